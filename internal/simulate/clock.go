package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// searchPath finds the virtual clock before PostgreSQL's own.
const searchPath = "virtual, pg_catalog, public"

// The database's clock is a sequence of microseconds: each reading is one later than the one before, whatever the machine
// does, and a schedule moves it by hours at once. It replaces clock_timestamp() and now() for every session with our
// search_path, and in the defaults of columns. Nor is anything drawn at random there.
const virtualClock = `
	CREATE SCHEMA virtual;
	CREATE SEQUENCE virtual.ticks;
	CREATE FUNCTION virtual.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
		$$ SELECT to_timestamp(nextval('virtual.ticks') / 1e6::float8) $$;
	CREATE FUNCTION virtual.now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
		$$ SELECT to_timestamp(nextval('virtual.ticks') / 1e6::float8) $$;
	CREATE FUNCTION virtual.random() RETURNS float8 LANGUAGE sql VOLATILE AS $$ SELECT 0.5::float8 $$;`

// installClock gives a database a virtual clock.
func installClock(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, virtualClock); err != nil {
		return fmt.Errorf("make the virtual clock: %w", err)
	}
	rows, err := conn.Query(ctx, `
		SELECT format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT virtual.%s', d.adrelid::regclass, a.attname,
		              replace(pg_get_expr(d.adbin, d.adrelid), 'CURRENT_TIMESTAMP', 'now()'))
		  FROM pg_attrdef d
		  JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
		  JOIN pg_class c ON c.oid = d.adrelid
		 WHERE c.relnamespace = 'public'::regnamespace
		   AND pg_get_expr(d.adbin, d.adrelid) IN ('now()', 'clock_timestamp()', 'CURRENT_TIMESTAMP')
		 ORDER BY 1`)
	if err != nil {
		return fmt.Errorf("find the defaults that read the clock: %w", err)
	}
	changes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("find the defaults that read the clock: %w", err)
	}
	for _, change := range changes {
		if _, err := conn.Exec(ctx, change); err != nil {
			return fmt.Errorf("%s: %w", change, err)
		}
	}
	return nil
}

// setClock sets the database's clock.
func setClock(ctx context.Context, pool *pgxpool.Pool, to time.Time) error {
	_, err := pool.Exec(ctx, `SELECT setval('virtual.ticks', $1)`, to.UnixMicro())
	return err
}

// advanceClock moves it forward.
func advanceClock(ctx context.Context, pool *pgxpool.Pool, by time.Duration) error {
	_, err := pool.Exec(ctx, `SELECT setval('virtual.ticks', nextval('virtual.ticks') + $1)`, by.Microseconds())
	return err
}
