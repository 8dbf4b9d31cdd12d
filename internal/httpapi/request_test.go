package httpapi_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"holdfast/internal/httpapi"
)

func set(path string, v any) func(map[string]any) {
	return func(m map[string]any) {
		names := strings.Split(path, ".")
		for _, name := range names[:len(names)-1] {
			m, _ = m[name].(map[string]any)
		}
		m[names[len(names)-1]] = v
	}
}

func without(name string) func(map[string]any) {
	return func(m map[string]any) { delete(m, name) }
}

func many(n int) map[string]any {
	notes := map[string]any{}
	for i := range n {
		notes[strconv.Itoa(i)] = ""
	}
	return notes
}

func TestBadMembersAreRefusedAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct {
		spoil    func(map[string]any)
		location string
		says     string
	}{
		"unknown member":        {set("colour", "red"), "body.colour", "no such member"},
		"unknown nested member": {set("customer.phone", "1"), "body.customer.phone", "no such member"},
		"name in another case":  {set("Quantity", 1), "body.Quantity", "no such member"},

		"no resource":          {without("resource_id"), "body.resource_id", "is missing"},
		"resource is a number": {set("resource_id", 7), "body.resource_id", "UUID"},
		"resource is no id":    {set("resource_id", "court-1"), "body.resource_id", "UUID"},
		"resource with NUL":    {set("resource_id", "\x00"), "body.resource_id", "UUID"},
		"resource is a urn":    {set("resource_id", "urn:uuid:"+uuid.NewString()), "body.resource_id", "UUID"},
		"resource is null":     {set("resource_id", nil), "body.resource_id", "UUID"},

		"no start":               {without("start"), "body.start", "is missing"},
		"start is a number":      {set("start", 1793522400), "body.start", "RFC 3339"},
		"start is a date":        {set("start", "2027-05-01"), "body.start", "RFC 3339"},
		"start without offset":   {set("start", "2027-05-01T10:00:00"), "body.start", "no offset"},
		"fraction and no offset": {set("start", "2027-05-01T10:00:00.5"), "body.start", "no offset"},
		"start with a space":     {set("start", "2027-05-01 10:00:00Z"), "body.start", "RFC 3339"},
		"comma fraction":         {set("start", "2027-05-01T10:00:00,5Z"), "body.start", "RFC 3339"},
		"no such day":            {set("start", "2027-02-29T10:00:00Z"), "body.start", "RFC 3339"},
		"no such hour":           {set("start", "2027-05-01T24:00:00Z"), "body.start", "RFC 3339"},
		"no such offset":         {set("start", "2027-05-01T10:00:00+24:00"), "body.start", "RFC 3339"},
		"leap second":            {set("start", "2016-12-31T23:59:60Z"), "body.start", "leap second"},
		"nanoseconds":            {set("start", "2027-05-01T10:00:00.0000001Z"), "body.start", "microseconds"},
		"too early":              {set("start", "1999-12-31T23:59:59Z"), "body.start", "2000 to 2100"},
		"too early in UTC":       {set("start", "2000-01-01T00:30:00+01:00"), "body.start", "2000 to 2100"},
		"too late":               {set("end", "2101-01-01T00:00:00Z"), "body.end", "2000 to 2100"},
		"year 0000":              {set("start", "0000-01-01T00:00:00Z"), "body.start", "2000 to 2100"},
		"five-digit year":        {set("start", "12027-05-01T10:00:00Z"), "body.start", "RFC 3339"},
		"no length":              {set("end", "2027-05-01T08:00:00Z"), "body.end", "same moment"},
		"end before start":       {set("end", "2027-05-01T07:59:59Z"), "body.end", "before start"},
		"longer than 366 days":   {set("end", "2028-05-01T08:00:00.000001Z"), "body.end", "366 days"},
		"not a multiple":         {set("end", "2027-05-01T08:30:00Z"), "body.end", "multiple of 60 minutes"},
		"a microsecond too long": {set("end", "2027-05-01T09:00:00.000001Z"), "body.end", "multiple of 60 minutes"},

		"quantity 0":          {set("quantity", 0), "body.quantity", "1 to 1000"},
		"negative quantity":   {set("quantity", -1), "body.quantity", "1 to 1000"},
		"quantity 1001":       {set("quantity", 1001), "body.quantity", "1 to 1000"},
		"quantity is text":    {set("quantity", "1"), "body.quantity", "whole number"},
		"quantity 1.5":        {set("quantity", 1.5), "body.quantity", "whole number"},
		"quantity is null":    {set("quantity", nil), "body.quantity", "whole number"},
		"huge quantity":       {set("quantity", 1e300), "body.quantity", "whole number"},
		"more than the place": {set("quantity", 2), "body.quantity", "place"},

		"no customer":            {without("customer"), "body.customer", "is missing"},
		"customer is a list":     {set("customer", []any{}), "body.customer", "object"},
		"no name":                {set("customer", map[string]any{"email": "a@b.example"}), "body.customer.name", "is missing"},
		"empty name":             {set("customer.name", ""), "body.customer.name", "1 to 200"},
		"long name":              {set("customer.name", strings.Repeat("ä", 201)), "body.customer.name", "1 to 200"},
		"name with a line break": {set("customer.name", "Ada\nLovelace"), "body.customer.name", "control"},
		"name with NUL":          {set("customer.name", "Ada\x00"), "body.customer.name", "control"},
		"name with C1":           {set("customer.name", "Ada\u0085"), "body.customer.name", "control"},
		"empty e-mail":           {set("customer.email", ""), "body.customer.email", "e-mail"},
		"no e-mail":              {set("customer.email", "ada"), "body.customer.email", "e-mail"},
		"two e-mails":            {set("customer.email", "a@b.example,c@d.example"), "body.customer.email", "e-mail"},
		"e-mail with a name":     {set("customer.email", "Ada <a@b.example>"), "body.customer.email", "e-mail"},
		"e-mail with a comment":  {set("customer.email", "a@b.example (Ada)"), "body.customer.email", "e-mail"},
		"e-mail with NUL":        {set("customer.email", "a\x00@b.example"), "body.customer.email", "e-mail"},
		"e-mail with a break":    {set("customer.email", "a@b.example\r\nBcc: x@y.example"), "body.customer.email", "e-mail"},
		"long e-mail":            {set("customer.email", strings.Repeat("a", 64)+"@"+strings.Repeat("b", 186)+".example"), "body.customer.email", "e-mail"},

		"no payment method":         {without("payment_method"), "body.payment_method", "is missing"},
		"empty payment method":      {set("payment_method", ""), "body.payment_method", "1 to 255"},
		"long payment method":       {set("payment_method", strings.Repeat("p", 256)), "body.payment_method", "1 to 255"},
		"payment method with space": {set("payment_method", "pm card"), "body.payment_method", "ASCII"},
		"payment method with ä":     {set("payment_method", "pm_ä"), "body.payment_method", "ASCII"},
		"payment method with NUL":   {set("payment_method", "pm\x00"), "body.payment_method", "ASCII"},

		"metadata is text":       {set("metadata", "x"), "body.metadata", "object"},
		"metadata is null":       {set("metadata", nil), "body.metadata", "object"},
		"21 notes":               {set("metadata", many(21)), "body.metadata", "20"},
		"long note name":         {set("metadata", map[string]any{strings.Repeat("k", 41): ""}), "body.metadata." + strings.Repeat("k", 41), "40"},
		"empty note name":        {set("metadata", map[string]any{"": ""}), "body.metadata", "40"},
		"note name with NUL":     {set("metadata", map[string]any{"\x00": ""}), "body.metadata.\x00", "40"},
		"long note":              {set("metadata", map[string]any{"k": strings.Repeat("v", 501)}), "body.metadata.k", "500"},
		"note with NUL":          {set("metadata", map[string]any{"k": "a\x00b"}), "body.metadata.k", "NUL"},
		"note is a number":       {set("metadata", map[string]any{"k": 1}), "body.metadata.k", "string"},
		"expected_total is 2500": {set("expected_total", 2500), "body.expected_total", "object"},
		"expected_total is null": {set("expected_total", nil), "body.expected_total", "object"},
		"negative amount":        {set("expected_total.amount", -1), "body.expected_total.amount", "whole number"},
		"amount 25.00":           {set("expected_total.amount", 25.5), "body.expected_total.amount", "whole number"},
		"amount is text":         {set("expected_total.amount", "2500"), "body.expected_total.amount", "whole number"},
		"amount too large":       {set("expected_total.amount", 1_000_000_000_000), "body.expected_total.amount", "whole number"},
		"amount beyond 64 bits":  {set("expected_total.amount", 1e19), "body.expected_total.amount", "whole number"},
		"no currency":            {set("expected_total", map[string]any{"amount": 1}), "body.expected_total.currency", "is missing"},
		"currency of two":        {set("expected_total.currency", "EU"), "body.expected_total.currency", "ISO 4217"},
		"currency €":             {set("expected_total.currency", "€"), "body.expected_total.currency", "ISO 4217"},
		"currency with NUL":      {set("expected_total.currency", "EU\x00"), "body.expected_total.currency", "ISO 4217"},
		"Turkish currency":       {set("expected_total.currency", "ıdr"), "body.expected_total.currency", "ISO 4217"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := b.book(t, "k", b.body(c.spoil))
			p := a.refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
			require.Len(t, p.Errors, 1, "%s", a.body)
			require.Equal(t, c.location, p.Errors[0].Location)
			require.Contains(t, p.Errors[0].Message, c.says)
		})
	}
	t.Cleanup(func() { require.Zero(t, b.rows(t), "something was written") })
}

func TestBadBodiesAreRefusedAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	good := b.body()
	for name, c := range map[string]struct {
		body string
		says string
	}{
		"empty":                 {"", "empty"},
		"white space":           {" \n\t", "empty"},
		"not JSON":              {"start=now", "invalid character"},
		"cut off":               {good[:len(good)-1], "unexpected end"},
		"a comment":             {"// book\n" + good, "invalid character"},
		"trailing comma":        {strings.TrimSuffix(good, "}") + ",}", "invalid character"},
		"trailing garbage":      {good + "x", "invalid character"},
		"two bodies":            {good + good, "invalid character"},
		"BOM":                   {"\ufeff" + good, "invalid character"},
		"NaN":                   {strings.Replace(good, "2500", "NaN", 1), "invalid character"},
		"raw control character": {strings.Replace(good, "Ada", "A\x01", 1), "invalid character"},
		"invalid UTF-8":         {strings.Replace(good, "Ada", "\xff\xfe", 1), "UTF-8"},
		"overlong UTF-8":        {strings.Replace(good, "Ada", "\xc0\x80", 1), "UTF-8"},
		"half a surrogate":      {strings.Replace(good, "Ada", `\ud83d`, 1), "surrogate"},
		"the other half":        {strings.Replace(good, "Ada", `\ude00`, 1), "surrogate"},
		"two first halves":      {strings.Replace(good, "Ada", `\ud83d\ud83d`, 1), "surrogate"},
		"member twice":          {strings.Replace(good, "{", `{"payment_method":"pm_other",`, 1), `"payment_method" is given twice`},
		"member twice, escaped": {strings.Replace(good, "{", `{"payment\u005fmethod":"pm_other",`, 1), `"payment_method" is given twice`},
		"nested member twice":   {strings.Replace(good, `"name"`, `"name":"Eve","name"`, 1), `"name" is given twice`},
		"too deep":              {strings.Repeat("[", 17) + strings.Repeat("]", 17), "nested"},
		"far too deep":          {strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), "exceeded max depth"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := b.book(t, "k", c.body).refused(t, http.StatusBadRequest, httpapi.CodeMalformedJSON)
			require.Contains(t, p.Detail, c.says)
		})
	}
	for name, body := range map[string]string{"null": "null", "list": "[]", "text": `"x"`, "number": "1", "true": "true"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := b.book(t, "k", body).refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
			require.Equal(t, "body", p.Errors[0].Location)
		})
	}
	t.Cleanup(func() { require.Zero(t, b.rows(t), "something was written") })
}

func TestEveryFaultIsToldAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.book(t, "k", `{"start":"2027-05-01T10:00:00","quantity":0,"customer":{"name":""},"x":1}`).
		refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	var locations []string
	for _, e := range p.Errors {
		locations = append(locations, e.Location)
	}
	require.ElementsMatch(t, []string{
		"body.resource_id", "body.start", "body.end", "body.quantity", "body.payment_method",
		"body.customer.name", "body.customer.email", "body.x",
	}, locations)
	require.Contains(t, p.Detail, "8 things are wrong")

	var unknown []string
	for i := range 1000 {
		unknown = append(unknown, fmt.Sprintf(`"u%d":1`, i))
	}
	a := b.book(t, "k", "{"+strings.Join(unknown, ",")+"}")
	require.Len(t, a.refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed).Errors, 20)
	long := b.book(t, "k", `{"`+strings.Repeat("n", 60_000)+`":1}`)
	require.Less(t, len(long.body), 4000, "a name as long as the body is not repeated")
	b.nothingWritten(t)
}

// What is at the edge of the rules is taken, and given back as it came.
func TestWhatIsJustAllowedIsTaken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	notes := map[string]any{}
	for i := range 20 {
		notes[strings.Repeat("ä", 38)+fmt.Sprintf("%02d", i)] = strings.Repeat("😀", 100) + strings.Repeat("\n", 400)
	}
	for i, change := range []func(map[string]any){
		set("metadata", notes),
		set("customer.name", strings.Repeat("😀", 200)),
		set("customer.name", `<b>"'; DROP TABLE bookings; --</b>`),
		set("payment_method", strings.Repeat("~", 255)),
		without("metadata"),
		without("expected_total"),
		set("quantity", 1),
	} {
		name := fmt.Sprintf("day-%d", i)
		start, end := fmt.Sprintf("2027-06-%02dt08:00:00.123456z", i+1), fmt.Sprintf("2027-06-%02dT13:00:00.123456+04:00", i+1)
		a := b.book(t, name, b.body(change, set("start", start), set("end", end)))
		require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
		var made, want map[string]any
		strict(t, a.body, &made)
		strict(t, []byte(b.body(change)), &want)
		require.Equal(t, want["customer"], made["customer"])
		if want["metadata"] == nil {
			want["metadata"] = map[string]any{}
		}
		require.Equal(t, want["metadata"], made["metadata"])
		require.Equal(t, fmt.Sprintf("2027-06-%02dT08:00:00.123456Z", i+1), made["start"])
		require.JSONEq(t, string(a.body), string(b.get(t, a.header.Get("Location")).body))
	}
	year := b.book(t, "year", b.body(without("expected_total"), set("start", "2098-01-01T00:00:00Z"), set("end", "2099-01-02T00:00:00Z")))
	require.Equal(t, http.StatusCreated, year.status, "%s", year.body)
}

func TestRefusalsOfTheAcceptingTransactionWriteNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.book(t, "k", b.body(set("resource_id", uuid.NewString()))).refused(t, http.StatusNotFound, httpapi.CodeResourceNotFound)
	require.Equal(t, "body.resource_id", p.Errors[0].Location)

	_, err := b.db.Pool.Exec(t.Context(), `UPDATE resources SET price = 49`)
	require.NoError(t, err)
	b.book(t, "k", b.body(without("expected_total"))).refused(t, http.StatusUnprocessableEntity, httpapi.CodeAmountTooSmall)
	_, err = b.db.Pool.Exec(t.Context(), `UPDATE resources SET price = 100000000`)
	require.NoError(t, err)
	b.book(t, "k", b.body(without("expected_total"))).refused(t, http.StatusUnprocessableEntity, httpapi.CodeAmountTooLarge)
	b.nothingWritten(t)
}
