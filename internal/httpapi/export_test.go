package httpapi

// DecodeBooking is open to tests of its limits.
var DecodeBooking = decodeBooking
