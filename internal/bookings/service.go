package bookings

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
)

// Request is a validated booking request.
type Request struct {
	ResourceID    domain.ResourceID
	Start, End    time.Time // half-open, any zone
	Quantity      int       // places; 0 means 1
	Expected      *domain.Money
	CustomerName  string
	CustomerEmail string
	PaymentMethod string // the provider's token
	Metadata      map[string]string
}

// Response is a decision as it was committed: a booking (201) or a refusal of the business (409, a problem document).
// A replay is equal to the first answer, byte for byte.
type Response struct {
	Status     int
	Body       []byte
	Location   string // of the booking; empty for a refusal
	Replayed   bool
	KeyExpires time.Time // until when this answer is kept
}

// ErrKeyReused says that the key was used before with other parameters. Nothing of the first request is revealed.
var ErrKeyReused = errors.New("the idempotency key was used before with other parameters")

// ErrInProgress says that another request with this key has not decided in the time that this one could wait. It says
// nothing about whether a booking exists; the same request may be sent again.
var ErrInProgress = errors.New("a request with this idempotency key is still in progress")

// KeyExpiredError says that the key was used before and its stored answer is gone. There is never a second booking.
type KeyExpiredError struct {
	Location string // of the booking that the key made; empty if it was refused
}

func (e *KeyExpiredError) Error() string {
	return "the stored answer for this idempotency key has expired"
}

// Waker is told, after the commit, that there is work; it must not block. Workers poll anyway.
type Waker interface {
	Wake(kind domain.EffectKind)
}

// Config sets how long things last.
type Config struct {
	Retention time.Duration // of a stored response; default 24 h
	Budget    time.Duration // for retries of a busy database within one request; default 4 s
}

// Service accepts and shows bookings.
type Service struct {
	pool   *pgxpool.Pool
	waker  Waker
	config Config
}

// New makes the service on a pool whose lock_timeout bounds how long a request waits for its twin.
func New(pool *pgxpool.Pool, waker Waker, config Config) *Service {
	if config.Retention <= 0 {
		config.Retention = 24 * time.Hour
	}
	if config.Budget <= 0 {
		config.Budget = 4 * time.Second
	}
	return &Service{pool: pool, waker: waker, config: config}
}
