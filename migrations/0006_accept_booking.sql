-- +goose Up
-- The accepting transaction as one call: one round trip, and right under Read Committed because each statement in
-- it takes a new snapshot, so that whatever it waited for is visible to the next one.

-- An instant as the API shows it: UTC, always microseconds, so that equal instants are equal bytes.
-- +goose StatementBegin
CREATE FUNCTION rfc3339(t timestamptz) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
$$;
-- +goose StatementEnd

-- A business refusal as an RFC 9457 problem document. It is stored and replayed like a booking.
-- +goose StatementBegin
CREATE FUNCTION refusal_json(p_code text, p_title text, p_detail text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT json_build_object('type', 'urn:holdfast:problem:' || p_code, 'title', p_title, 'status', 409,
                             'code', p_code, 'detail', p_detail)::text;
$$;
-- +goose StatementEnd

-- take_slot takes p_quantity places of a resource for p_during, or none.
-- A single place is tried from a place that the booking's id picks, so that rivals spread over the free ones; several
-- are taken in ascending order only, so that two takers can never hold what the other waits for.
-- ON CONFLICT DO NOTHING waits for a rival that has not decided yet and raises nothing: no deadlocks.
-- +goose StatementBegin
CREATE FUNCTION take_slot(p_booking uuid, p_resource uuid, p_places int, p_quantity int, p_during tstzrange)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_offset int := 0;
    v_place  int;
    v_taken  int := 0;
BEGIN
    IF p_quantity = 1 AND p_places > 1 THEN
        v_offset := abs(hashtext(p_booking::text) % p_places);
    END IF;
    FOR i IN 0 .. p_places - 1 LOOP
        v_place := (i + v_offset) % p_places + 1;
        INSERT INTO allocations (booking_id, resource_id, place, during)
        VALUES (p_booking, p_resource, v_place, p_during)
        ON CONFLICT ON CONSTRAINT allocations_resource_id_place_during_excl DO NOTHING;
        IF FOUND THEN
            v_taken := v_taken + 1;
            IF v_taken = p_quantity THEN
                RETURN true;
            END IF;
        END IF;
    END LOOP;
    IF v_taken > 0 THEN
        DELETE FROM allocations WHERE booking_id = p_booking;
    END IF;
    RETURN false;
END;
$$;
-- +goose StatementEnd

-- accept_booking claims the key, takes the slot and commits what it intends: booking, payment, charge effect, its
-- job, the held event and the stored response.
--
--   created     made now; body is the booking
--   refused     decided now and stored: slot_unavailable or price_changed; body is the problem document
--   existing    the key was there already; what was stored for it, for the caller to compare and replay
--   in_progress another request with this key has not decided within lock_timeout; nothing is known about it
--
-- It raises, and so leaves nothing behind: HF404 the resource does not exist; HF422 the request can never be booked
-- (column name = the member at fault, hint = problem code); 55P03 the slot's rival did not decide within lock_timeout.
-- +goose StatementBegin
CREATE FUNCTION accept_booking(
    p_client uuid, p_route text, p_key text, p_fingerprint bytea, p_fingerprint_version smallint, p_retention interval,
    p_booking uuid, p_payment uuid, p_charge uuid, p_event uuid,
    p_resource uuid, p_start timestamptz, p_end timestamptz, p_quantity int,
    p_expected_amount bigint, p_expected_currency text,
    p_customer_name text, p_customer_email text, p_payment_method text, p_metadata jsonb,
    OUT outcome text, OUT status smallint, OUT body text, OUT location text,
    OUT fingerprint bytea, OUT fingerprint_version smallint, OUT expires_at timestamptz, OUT expired boolean
) LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    v_now      timestamptz := clock_timestamp();
    v_res      record;
    v_amount   numeric;
    v_during   tstzrange := tstzrange(p_start, p_end, '[)');
    v_minutes  numeric := extract(epoch FROM p_end - p_start) / 60;
    v_hold_end timestamptz;
BEGIN
    SELECT r.id, r.places, r.unit_minutes, r.price, r.currency, r.hold, r.refund_policy, l.step, l.maximum, l.minimum
      INTO v_res FROM resources r LEFT JOIN charge_limits l ON l.currency = r.currency WHERE r.id = p_resource;
    v_amount := v_res.price * p_quantity * v_minutes / v_res.unit_minutes;
    v_hold_end := date_trunc('microseconds', v_now + v_res.hold);
    expires_at := v_now + p_retention;
    expired := false;
    fingerprint := p_fingerprint;
    fingerprint_version := p_fingerprint_version;
    status := 201;
    location := p_route || '/' || p_booking;
    IF v_amount = trunc(v_amount) AND v_amount <= 999999999999 THEN
        body := json_build_object(
            'id', p_booking, 'status', 'held', 'resource_id', p_resource,
            'start', rfc3339(p_start), 'end', rfc3339(p_end), 'quantity', p_quantity,
            'total', json_build_object('amount', v_amount::bigint, 'currency', v_res.currency),
            'customer', json_build_object('name', p_customer_name, 'email', p_customer_email),
            'metadata', p_metadata,
            'hold_expires_at', rfc3339(v_hold_end),
            'payment', json_build_object('status', 'pending'),
            'created_at', rfc3339(v_now))::text;
    END IF;

    -- Claim the key, with the answer that it will have if all goes well. A twin waits here for the first to decide.
    BEGIN
        INSERT INTO idempotency_keys AS k (client_id, method, route, key, fingerprint, fingerprint_version, booking_id,
                                           response_status, response_body, response_location, created_at, response_expires_at)
        VALUES (p_client, 'POST', p_route, p_key, p_fingerprint, p_fingerprint_version, p_booking,
                status, body, location, v_now, expires_at)
        ON CONFLICT ON CONSTRAINT idempotency_keys_pkey DO NOTHING;
    EXCEPTION WHEN lock_not_available THEN
        outcome := 'in_progress';
        RETURN;
    END;
    IF NOT FOUND THEN
        SELECT 'existing', k.response_status, k.response_body, k.response_location, k.fingerprint, k.fingerprint_version,
               k.response_expires_at, k.response_expires_at <= clock_timestamp()
          INTO outcome, status, body, location, fingerprint, fingerprint_version, expires_at, expired
          FROM idempotency_keys k
         WHERE k.client_id = p_client AND k.method = 'POST' AND k.route = p_route AND k.key = p_key;
        RETURN;
    END IF;

    -- Refusals that no retry of this request can change. They roll the claim back: the key stays free.
    IF v_res.id IS NULL THEN
        RAISE EXCEPTION 'there is no such resource' USING ERRCODE = 'HF404', COLUMN = 'resource_id', HINT = 'resource_not_found';
    ELSIF v_minutes % v_res.unit_minutes <> 0 THEN
        RAISE EXCEPTION 'the duration must be a multiple of % minutes', v_res.unit_minutes
            USING ERRCODE = 'HF422', COLUMN = 'end', HINT = 'validation_failed';
    ELSIF p_quantity > v_res.places THEN
        RAISE EXCEPTION 'the resource has % place(s)', v_res.places
            USING ERRCODE = 'HF422', COLUMN = 'quantity', HINT = 'validation_failed';
    END IF;

    -- What the provider cannot take is refused before a slot is.
    IF v_res.step IS NULL THEN
        RAISE EXCEPTION 'the payment provider does not charge %', v_res.currency
            USING ERRCODE = 'HF422', COLUMN = 'resource_id', HINT = 'currency_not_chargeable';
    ELSIF v_amount > v_res.maximum THEN
        RAISE EXCEPTION 'the total of % % is more than the % that the payment provider takes (minor units)', trunc(v_amount), v_res.currency, v_res.maximum
            USING ERRCODE = 'HF422', COLUMN = 'resource_id', HINT = 'amount_too_large';
    ELSIF v_amount < v_res.minimum THEN
        RAISE EXCEPTION 'the total of % % is below the payment provider''s minimum of % (minor units)', trunc(v_amount), v_res.currency, v_res.minimum
            USING ERRCODE = 'HF422', COLUMN = 'resource_id', HINT = 'amount_too_small';
    ELSIF v_amount % v_res.step <> 0 THEN
        RAISE EXCEPTION 'the total of % % is not a multiple of %, and the payment provider counts nothing finer (minor units)', trunc(v_amount), v_res.currency, v_res.step
            USING ERRCODE = 'HF422', COLUMN = 'resource_id', HINT = 'amount_too_fine';
    END IF;

    -- Decisions of the business: stored, so that a late duplicate of a refused request never turns into a booking.
    IF p_expected_amount <> v_amount OR p_expected_currency <> v_res.currency THEN
        body := refusal_json('price_changed', 'The price has changed',
            format('The total is %s %s (minor units), not the expected %s %s. Look at the price again and book with a new key.',
                   v_amount::bigint, v_res.currency, p_expected_amount, p_expected_currency));
    ELSIF NOT take_slot(p_booking, p_resource, v_res.places, p_quantity, v_during) THEN
        body := refusal_json('slot_unavailable', 'The slot is taken',
            'Not enough places are free for the whole time. Choose another time and book with a new key.');
    ELSE
        INSERT INTO bookings (id, client_id, resource_id, during, quantity, amount, currency, customer_name, customer_email,
                              metadata, status, refund_policy, hold_expires_at, event_seq, created_at, updated_at)
        VALUES (p_booking, p_client, p_resource, v_during, p_quantity, v_amount, v_res.currency, p_customer_name,
                p_customer_email, p_metadata, 'held', v_res.refund_policy, v_hold_end, 1, v_now, v_now);
        INSERT INTO payments (id, booking_id, amount, currency, payment_method, created_at, updated_at)
        VALUES (p_payment, p_booking, v_amount, v_res.currency, p_payment_method, v_now, v_now);
        -- The held event has no job of its own: the booking's first publish job drains it. A job row is a third of
        -- the cost of this transaction.
        INSERT INTO outbox (id, booking_id, kind, event_type, event_seq, payload, due_at, job_id, created_at)
        VALUES (p_charge, p_booking, 'charge', NULL, NULL, '{}', v_now, enqueue_job('charge', p_charge, now()), v_now),
               (p_event, p_booking, 'publish', 'held', 1,
                jsonb_build_object(
                    'booking_id', p_booking, 'payment_id', p_payment, 'resource_id', p_resource,
                    'status', 'held', 'payment_status', 'pending',
                    'start', rfc3339(p_start), 'end', rfc3339(p_end), 'quantity', p_quantity,
                    'total', jsonb_build_object('amount', v_amount::bigint, 'currency', v_res.currency),
                    'hold_expires_at', rfc3339(v_hold_end)),
                v_now, NULL, v_now);
        outcome := 'created';
        RETURN;
    END IF;

    outcome := 'refused';
    status := 409;
    location := NULL;
    UPDATE idempotency_keys k
       SET booking_id = NULL, response_status = status, response_body = body, response_location = NULL
     WHERE k.client_id = p_client AND k.method = 'POST' AND k.route = p_route AND k.key = p_key;
END;
$$;
-- +goose StatementEnd
