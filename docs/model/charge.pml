/* The charge protocol of one booking, as payments/ carries it out. README.md tells how to read and run it.
 *
 * Every `atomic` is one step that nothing else can interrupt: a transaction of ours, or one action of the provider.
 * Between two steps anything may happen: a crash, a twin, a late message, an hour. Steps name the function they stand for.
 * An option never opens with an `if`: spin would merge the two, `else` included, and lose behaviour. Hence some `skip`s. */

/* Bounds: ./check sets them for each configuration. */
#ifndef WORKERS
#define WORKERS 1        /* beside the reconciler; any of them may take any pending effect, again and again */
#endif
#ifndef FAULTS
#define FAULTS 1         /* of the network and the provider */
#endif
#ifndef CRASHES
#define CRASHES 0        /* deaths of a worker or reconciler, at any boundary between steps */
#endif
#ifndef CARDS
#define CARDS 1          /* that the customer may name, one after the other */
#endif
#ifndef OWN
#define OWN 0            /* confirms that the customer makes with the client secret, bypassing us */
#endif
#ifndef GIVES_UP
#define GIVES_UP 0       /* cancellations by the customer */
#endif
#ifndef HINTS
#define HINTS 0          /* webhooks: reads at any moment, beside those of the watch */
#endif
#ifndef REPLAYS
#define REPLAYS 0        /* by an operator */
#endif
#ifndef PROCESSING
#define PROCESSING 0     /* 1: the provider may take its time to decide */
#endif
#ifndef HIDDEN
#define HIDDEN 0         /* 1: the provider lists a half-done charge only once it has rolled it forward */
#endif
#ifndef CLIENTS
#define CLIENTS 0        /* requests under one key that make the booking; 0: it is made already */
#endif
#ifndef LAST
#define LAST PRUNED      /* the last hour of the clock */
#endif
#define MAXSENDS 2       /* payments.Config.MaxSends: a worker's sends of one effect */
#define CANCELS  5

/* The clock: the hold is over long before a key of the first hour reaches our horizon (20 h), and that before the
 * provider forgets it (24 h). */
#define HOLD_OVER 1
#define HORIZON   2
#define PRUNED    3

mtype = {
	RPM, RC, RA, PROC, SUCC, CANC,                       /* IntentStatus; also what an answer shows */
	STORED_500, LOST, BUSY, REJECTED, NO_CHARGE, HANGING, CHARGED,   /* other answers */
	HELD, ENDING, CONFIRMED, ENDED,                      /* domain/booking.go */
	EXPIRE, CANCEL, REFUSE, DOUBT,                       /* why it ends */
	PENDING, PROCESSING_, ACTION, DECLINED, IN_DOUBT, PAID, CANCELED, REFUSED,   /* domain/payment.go; effects too */
	FINISHED,
	NOTHING, SUCCEEDED, SHOWN,                                /* domain.Fact; the other facts are named like the payments */
	OPEN, OPEN_400, RAN, NOT_RUN,                        /* provider_calls.outcome, with STORED_500 */
	ABSENT, IN_FLIGHT, STORED,                           /* the provider's key store */
	WORKER, RECONCILER, WATCH,
	SEND, LOOK, RESOLVE, FIND, FENCE, FENCEABLE                /* why a step is taken */
}

/* Keys: domain.ProviderKey. */
#define CREATE(n)  (n - 1)            /* 1..3 */
#define UPDATE(c)  (c + 1)            /* cards 2 and 3 */
#define CONFIRM(c) (c + 4)            /* cards 1..3 */
#define CANCELN(n) (n + 7)
#define KEYS       (8 + CANCELS)
#define isCreate(k)  (k <= 2)
#define isUpdate(k)  (k == 3 || k == 4)
#define isConfirm(k) (k >= 5 && k <= 7)
#define isCancel(k)  (k >= 8)
#define OWN_CARD 9

/* Our tables. */
mtype booking = HELD, reason, pay = PENDING, charge = PENDING, cancel;   /* charge, cancel: the effects; 0: none */
byte id;                              /* payments.provider_intent_id; 0: none committed */
byte card = 1, cancels, attempts, cancelAttempts;
bit  seen, refund, secret;            /* seen: a read has shown the newest card; secret: the customer has the client secret */
byte first[KEYS]; mtype ev[KEYS];     /* provider_calls: first_sent_at, outcome; ev 0: no row */
bit  fresh[4];                        /* of each process: the payment's version is still the one it has read */
byte now, made; mtype key; byte i;

/* The provider, by intent. */
mtype st[4]; byte method[4], failed[4], charges[4]; bit half[4];   /* failed: the method that last_payment_error names */
mtype store[KEYS], stored[KEYS]; bit early[KEYS], wire[KEYS];      /* early: stored in the first hour; wire: arrives later */
bit ran[4];                           /* confirm:<n> has run: known to nobody but the provider */
byte runs[KEYS];

byte faults = FAULTS, crashes = CRASHES, own = OWN, givesUp = GIVES_UP, hints = HINTS, replays = REPLAYS;

/* Names of the properties, always 0: a violated assertion prints the name of the guarantee that it belongs to. */
byte G1_two_bookings_of_one_key, G3_charged_twice, G3_charged_a_replaced_card, G3_key_executed_twice,
	G4_released_unproved, G4_charged_after_release, G4_older_answer_settles_newer_send, G4_confirmed_unpaid, BOUND_too_small;

#define closed   (pay == PAID || pay == CANCELED || pay == REFUSED)
#define old(k)   (now - first[k] >= HORIZON)
#define dead(k)  (ev[k] == STORED_500 || ev[k] == NOT_RUN || old(k))              /* payments/dossier.go dead */
#define open(k)  (ev[k] == OPEN || ev[k] == OPEN_400 || ev[k] == STORED_500)      /* payments/dossier.go open */
#define cardSeen (card == 1 || seen)
#define isState(r) (r == RPM || r == RC || r == RA || r == PROC || r == SUCC || r == CANC)
#define total    (charges[1] + charges[2] + charges[3])
#ifdef NEW_KEY_ON_RETRY
#define on(k)    (k == CONFIRM(2) -> 2 : 1)
#define cardOf(k) 1
#else
#define on(k)    id
#define cardOf(k) (k - 4)
#endif

/* ------------------------------------------------------------------------------------------------ the provider */

inline take(i, m) {                   /* a charge of intent i on method m succeeds */
	charges[i]++;
	assert(total <= 1 || G3_charged_twice);
	assert(m == card || m == OWN_CARD || G3_charged_a_replaced_card);
	assert(HIDDEN || booking != ENDED || G4_charged_after_release)
}

inline fail(i, m) { st[i] = RPM; failed[i] = m; method[i] = 0 }   /* a decline clears the method */

inline execute(k) {                   /* r: the state that the answer shows */
	runs[k]++;
	if
	:: isCreate(k) ->
		if
		:: st[k+1] == 0 -> st[k+1] = RC; method[k+1] = 1
		:: else
		fi;
		r = RC
	:: !isCreate(k) && !isCancel(k) && half[on(k)] -> r = BUSY
	:: else ->
		if
		:: st[on(k)] == SUCC || st[on(k)] == CANC || st[on(k)] == PROC          /* refused, with the state */
		:: isUpdate(k) && (st[on(k)] == RPM || st[on(k)] == RC || st[on(k)] == RA) -> st[on(k)] = RC; method[on(k)] = k - 1; failed[on(k)] = 0
		:: isCancel(k) && (st[on(k)] == RPM || st[on(k)] == RC || st[on(k)] == RA) -> st[on(k)] = CANC
		:: isConfirm(k) && st[on(k)] == RPM                                      /* refused: it has no method */
		:: isConfirm(k) && (st[on(k)] == RC || st[on(k)] == RA) ->
			if
			:: st[on(k)] = SUCC; take(on(k), method[on(k)])
			:: fail(on(k), method[on(k)])
			:: st[on(k)] = RA
			:: PROCESSING -> st[on(k)] = PROC
			fi
		fi;
		if
		:: isConfirm(k) -> ran[cardOf(k)] = 1
		:: else
		fi;
		r = st[on(k)]
	fi
}

inline keep(k, what) {                /* the answer under the key; a busy object's is not kept */
	if
	:: what == BUSY -> store[k] = ABSENT; runs[k]--    /* never: with one fault */
	:: else -> store[k] = STORED; stored[k] = what; early[k] = (now == 0)
	fi
}

inline hang(k) { half[on(k)] = 1; ran[cardOf(k)] = 1; runs[k]++ }            /* charged, or not: nobody can tell yet */
#define halfable(k) (isConfirm(k) && (st[on(k)] == RC || st[on(k)] == RA) && !half[on(k)])
#define locked      (store[3] == IN_FLIGHT || store[4] == IN_FLIGHT || store[5] == IN_FLIGHT || store[6] == IN_FLIGHT || store[7] == IN_FLIGHT)

/* payments/stripe Send: one request, and r: what came back. replay: it is the stored answer of an earlier one. */
inline transmit(k) {
	replay = 0;
	if
	:: store[k] == STORED -> replay = 1; r = stored[k]
	:: store[k] == IN_FLIGHT || (store[k] == ABSENT && !isCreate(k) && locked) -> r = BUSY      /* 409, 429 lock_timeout */
	:: store[k] == ABSENT && !(locked && !isCreate(k)) ->
		assert(runs[k] == 0 || G3_key_executed_twice);
		execute(k); keep(k, r)
	:: store[k] == ABSENT && faults > 0 -> faults--;
		if
		:: r = LOST                                                         /* the request is lost */
		:: wire[k] = 1; r = LOST                                            /* or arrives later */
		:: store[k] = IN_FLIGHT; r = LOST                                   /* slow: it has the key and acts later */
		:: r = BUSY                                                         /* 401, 429, 503: this send did nothing */
		:: r = REJECTED                                                     /* 400, 404: refused before it ran */
		:: skip; execute(k); keep(k, r); r = LOST                           /* the answer is lost */
		:: r = STORED_500; keep(k, r)                                       /* 500 before the effect */
		:: skip; execute(k); r = STORED_500; keep(k, r)                     /* 500 after it */
		:: halfable(k) -> hang(k); r = STORED_500; keep(k, r)               /* 500, and the charge hangs half done */
		fi
	fi
}

/* ------------------------------------------------------------------------------------------------ our transactions */

/* The version is kept as one bit for each process: whether nothing has moved since it read. */
inline moved() { fresh[0] = 0; fresh[1] = 0; fresh[2] = 0; fresh[3] = 0 }   /* payments.version + 1 */

inline released() {                   /* bookings.Apply frees the slot */
	assert(HIDDEN || id == 0 || (st[id] == CANC && !half[id] && charges[id] == 0) || (charges[id] > 0 && refund) || G4_released_unproved)
}

inline forget() {                     /* what matters no more once all is settled: it would only multiply the states */
	d_step {
		for (i : 0 .. KEYS-1) { ev[i] = 0; first[i] = 0 }
		i = 0; attempts = 0; cancelAttempts = 0; cancels = 0; seen = 0 }
}

inline conclude(p) {                  /* domain/settle.go conclude */
	pay = p; moved(); charge = FINISHED; booking = ENDED; released(); forget();
	if
	:: cancel != 0 -> cancel = FINISHED
	:: else
	fi
}

inline endBooking(why) {                     /* domain/settle.go End */
	if
#ifdef RELEASE_WITHOUT_FENCE
	:: skip -> conclude(CANCELED)
#else
	:: id == 0 -> conclude(CANCELED)
	:: else -> booking = ENDING; reason = why; charge = FINISHED; cancel = PENDING; moved()
#endif
	fi
}

inline change(p) {
	if
	:: pay != p -> pay = p; moved()
	:: else
	fi
}

#ifdef UNVERSIONED
#define current true
#else
#define current fresh[me]
#endif
#define passing(f) (f == DECLINED || f == ACTION || f == PROCESSING_ || f == REFUSED || f == IN_DOUBT || f == SHOWN)

inline settle(f) {                    /* payments/settle.go settle: the single door; domain/settle.go Settle */
	stale = 0;
	if
	:: f == SUCCEEDED && pay != PAID ->
		assert(charges[id] > 0 || G4_confirmed_unpaid);
		pay = PAID; moved(); charge = FINISHED; forget();
		if
		:: cancel != 0 -> cancel = FINISHED
		:: else
		fi;
		if
		:: booking == ENDED -> refund = 1                                   /* too late: it goes back */
		:: booking == ENDING && reason == CANCEL -> refund = 1; booking = ENDED; released()
		:: else -> booking = CONFIRMED
		fi
	:: f == CANCELED && !closed && booking != CONFIRMED -> conclude(CANCELED)
	:: passing(f) && !closed && booking == HELD && !(current) -> stale = 1
	:: passing(f) && !closed && booking == HELD && current ->
		assert((f != DECLINED && f != ACTION && f != PROCESSING_) || ran[card] || G4_older_answer_settles_newer_send);
		if
		:: f == DECLINED -> change(DECLINED); ev[CONFIRM(card)] = RAN; charge = FINISHED
		:: f == ACTION -> change(ACTION); ev[CONFIRM(card)] = RAN; charge = FINISHED; secret = 1
		:: f == PROCESSING_ || f == IN_DOUBT -> change(f);
			if
			:: charge == PENDING -> charge = IN_DOUBT
			:: else
			fi
		:: f == SHOWN -> seen = 1; ev[UPDATE(card)] = RAN; moved()                  /* the newest card is on the intent */
		:: f == REFUSED && id == 0 -> conclude(REFUSED)
		:: f == REFUSED && id != 0 -> endBooking(REFUSE)
		fi
	:: else
	fi
}

/* payments/look.go declined: requires_payment_method is a decline only if the confirm has run, or its error names the card.
 * DECLINE_BEFORE_CONFIRM is what the code says where no confirm is recorded: harmless only as long as there is one card. */
#ifdef DECLINE_BEFORE_CONFIRM
#define unproved(e) (ev[CONFIRM(card)] == 0 && e != 0)
#else
#define unproved(e) false
#endif
#define declined(e) ((ev[CONFIRM(card)] != 0 && !open(CONFIRM(card)) && e != 0) || e == card)

inline factOf() {                     /* payments/look.go factOf; f: the fact that r proves. A replay is a snapshot. */
	m = failed[id];
	if
	:: r == SUCC || r == CHARGED -> f = SUCCEEDED
	:: r == NO_CHARGE -> f = CANCELED
#ifdef CANCELED_WITHOUT_CHARGES
	:: r == CANC -> f = CANCELED
#endif
	:: r == PROC && !replay && cardSeen -> f = PROCESSING_
	:: r == RA && !replay && cardSeen -> f = ACTION
	:: r == RPM && !replay && ((cardSeen && declined(m)) || unproved(m)) -> f = DECLINED
	:: r == RC && !replay && !cardSeen && method[id] == card -> f = SHOWN
	:: else -> f = NOTHING
	fi;
	m = 0
}

/* ------------------------------------------------------------------------------------------------ the protocol
 * One process for the three who run it: a worker (owns pending effects), the reconciler (owns those in doubt) and its
 * watch (owns none). At a MOMENT a process may die: all that it knew is lost. */

#define IDLE   k = 0; r = 0; f = NOTHING; why = 0; replay = 0; only = 0; stale = 0; fresh[me] = 0; goto idle
#define MOMENT :: atomic { crashes > 0 -> crashes--; IDLE }
#define mine   (role == WORKER -> PENDING : IN_DOUBT)
#define watched (pay == ACTION || pay == DECLINED || pay == PROCESSING_ || (booking == ENDED && total > 0 && pay != PAID))
#define shows(r) (isState(r) || r == HANGING || r == NO_CHARGE || r == CHARGED)
#define lastCreate (ev[CREATE(3)] != 0 -> CREATE(3) : (ev[CREATE(2)] != 0 -> CREATE(2) : CREATE(1)))
#define newest (cardSeen -> CONFIRM(card) : UPDATE(card))

inline record(k) {                    /* payments/calls.go record */
	if
	:: ev[k] == 0 -> ev[k] = OPEN; first[k] = now; only = 1
	:: else -> only = 0
	fi;
	moved(); fresh[me] = 1; why = SEND
}

inline save(k, r) {                   /* payments/calls.go save */
	if
	:: shows(r) -> ev[k] = RAN
	:: r == REJECTED && only -> ev[k] = NOT_RUN
	:: r == REJECTED && !only && ev[k] == OPEN -> ev[k] = OPEN_400
	:: r == STORED_500 && open(k) -> ev[k] = STORED_500
	:: (r == LOST || r == BUSY) && ev[k] == OPEN_400 -> ev[k] = OPEN
	:: else
	fi
}

inline adopt(i) {                     /* payments/look.go adopt */
	if
	:: id == 0 && booking == HELD && !closed -> id = i; moved()
	:: else
	fi
}

inline absent() {                     /* payments/resolve.go absent */
	k = lastCreate;
	if
	:: ev[k] == OPEN_400 -> f = REFUSED
	:: ev[k] != OPEN_400 && ev[k] != 0 && dead(k) -> ev[k] = NOT_RUN
	:: else
	fi
}

proctype Engine(byte me; mtype role) {
	mtype r, f = NOTHING, why; byte k, m; bit replay, only, stale;      /* r: what was seen; f: the fact that it proves */

idle:
end:	if
	:: atomic { role == WORKER && charge == PENDING -> goto charge_ }               /* charge.go Charge */
	:: atomic { role == WORKER && cancel == PENDING -> goto fence }                 /* fence.go Fence */
	:: atomic { role == RECONCILER && cancel == IN_DOUBT -> why = FENCE; goto look }        /* resolve.go ResolveDoubt */
	:: atomic { role == RECONCILER && charge == IN_DOUBT && id != 0 -> why = RESOLVE; goto look }
	:: atomic { role == RECONCILER && charge == IN_DOUBT && id == 0 -> why = FIND; goto find }
	:: atomic { role == WATCH && id != 0 && watched -> why = WATCH; goto look }     /* watch.go Watch */
	:: atomic { role == WATCH && id != 0 && !watched && hints > 0 -> hints--; why = WATCH; goto look }
	fi;

charge_: if
	MOMENT
	:: atomic { fresh[me] = 1;
		if                                                                      /* charge.go nextCharge */
		:: why == RESOLVE && booking == HELD && pay != PAID && ev[newest] != 0 && dead(newest) -> endBooking(DOUBT); IDLE  /* resolve.go fenceIfDead */
		:: else
		fi;
		if
		:: charge != mine -> IDLE
		:: charge == mine && (booking != HELD || closed) -> charge = FINISHED; IDLE      /* never: whatever moves the booking ends its effects */
		:: charge == mine && booking == HELD && !closed && now >= HOLD_OVER -> endBooking(EXPIRE); IDLE
		:: else
		fi;
		if                                                                      /* charge.go nextSend */
		:: id == 0 && ev[lastCreate] != NOT_RUN -> k = lastCreate
		:: id == 0 && ev[lastCreate] == NOT_RUN -> k = lastCreate + 1; assert(isCreate(k) || BOUND_too_small)
		:: id != 0 -> k = newest
		fi;
#ifdef NEW_KEY_ON_RETRY
		if
		:: k == CONFIRM(1) && ev[k] == OPEN && id == 1 -> st[2] = RC; method[2] = 1; id = 2; k = CONFIRM(2)
		:: else
		fi;
#endif
		if
		:: ev[k] != 0 && (dead(k) || (open(k) && role == WORKER && attempts >= MAXSENDS)) -> settle(IN_DOUBT); IDLE    /* handOver */
		:: ev[k] != 0 && !dead(k) && !open(k) -> why = LOOK; k = 0; goto look   /* it ran */
		:: else
		fi;
		attempts = (attempts < MAXSENDS -> attempts + 1 : attempts);
		record(k) }
	fi;

send:	if
	MOMENT                                                                          /* recorded, not sent */
	:: atomic { skip;                                                               /* calls.go transmit */
		if
#ifndef RESEND_PAST_THE_HORIZON
		:: old(k) -> r = BUSY; replay = 0                                       /* not sent after all */
		:: else -> transmit(k)
#else
		:: skip -> transmit(k)
#endif
		fi;
		if
		:: isConfirm(k) || isCancel(k) -> factOf()        /* answers.go factOfConfirm */
		:: else
		fi }
	fi;

door:	if
	MOMENT                                                                          /* sent or seen, not settled */
	:: atomic { skip;
#ifndef CANCELED_WITHOUT_CHARGES
		if
		:: r == CANC -> goto list                                               /* look.go canceled */
		:: else
		fi;
#endif
		if
		:: why == SEND -> save(k, r)
		:: else
		fi;
		if
		:: why == FIND && k > 0 -> adopt(k)                                     /* resolve.go resolveCreate */
		:: why == FIND && k == 0 -> absent()
		:: why == SEND && isCreate(k) && isState(r) -> adopt(k + 1)             /* answers.go settleCreate, created */
		:: why == SEND && !isCancel(k) && r == REJECTED && only -> f = REFUSED  /* answers.go refused */
		:: why == SEND && !isCancel(k) && charge == mine && (r == STORED_500 || (r == REJECTED && !only)) -> f = IN_DOUBT  /* charge.go handOver */
		:: else
		fi;
#ifdef CONFIRM_WITHOUT_READ
		seen = seen || (why == SEND && isUpdate(k));
#endif
		settle(f);
		if
		:: why == SEND && (isConfirm(k) || isUpdate(k)) && shows(r) && (f == NOTHING || stale) -> why = LOOK; k = 0; goto look
		:: why == LOOK && f == NOTHING && !stale -> goto doubt                  /* charge.go lookStep */
		:: (why == RESOLVE && f == NOTHING && r != HANGING) || why == FIND -> k = 0; goto charge_       /* resolve.go chargeTurn */
		:: why == FENCE && f != SUCCEEDED && f != CANCELED && r != PROC && r != HANGING -> why = FENCEABLE; goto fence  /* fence.go lookThenFence */
		:: else -> IDLE
		fi }
	fi;

doubt:	if
	MOMENT
	:: atomic { skip;                                                               /* charge.go lookStep, handOver */
		if
		:: charge == mine -> settle(IN_DOUBT)
		:: else
		fi;
		IDLE }
	fi;

find:	if
	MOMENT
	:: atomic { fresh[me] = 1; k = (st[1] != 0 -> 1 : (st[2] != 0 -> 2 : (st[3] != 0 -> 3 : 0))); goto door }         /* look.go findIntents */
	fi;

look:	if
	MOMENT
	:: atomic { fresh[me] = 1; replay = 0; r = st[id]; factOf(); goto door }      /* look.go look: version, then GET; in one step, since what comes between only makes it stale */
	fi;

list:	if
	MOMENT
	:: atomic { r = (half[id] && !HIDDEN -> HANGING : (charges[id] > 0 -> CHARGED : NO_CHARGE)); factOf(); goto door }      /* look.go canceled */
	fi;

fence:	if
	MOMENT
	:: atomic { skip;                                                               /* fence.go nextCancel */
		if
		:: cancel != mine -> IDLE
		:: cancel == mine && (booking != ENDING || closed) -> cancel = FINISHED; IDLE    /* never: as above */
		:: cancel == mine && booking == ENDING && !closed && role == WORKER && cancelAttempts >= MAXSENDS -> cancel = IN_DOUBT; IDLE
		:: else
		fi;
		k = CANCELN(cancels);
		if
		:: why != FENCEABLE && (cancels > 0 || pay == PROCESSING_) -> why = FENCE; k = 0; goto look
		:: why != FENCEABLE && cancels > 0 && open(k) && !dead(k) && pay != PROCESSING_ && faults > 0 -> faults--        /* unreadable: the same key again */
		:: else
		fi;
		if
#ifdef ONE_CANCEL_KEY
		:: cancels == 0 -> cancels++; k = CANCELN(cancels)
#else
		:: cancels == 0 || !open(k) || dead(k) -> cancels++; assert(cancels <= CANCELS || BOUND_too_small); k = CANCELN(cancels)
#endif
		:: else
		fi;
		cancelAttempts = (cancelAttempts < MAXSENDS -> cancelAttempts + 1 : cancelAttempts);
		record(k); goto send }
	fi
}

/* ------------------------------------------------------------------------------------------------ everybody else */

#define due(k) (wire[k] || store[k] == IN_FLIGHT)
proctype Provider() { byte k; mtype r;
end:	do
	:: atomic {                                                                 /* late requests arrive, slow ones act */
		if
		:: due(0) -> k = 0 :: due(1) -> k = 1 :: due(2) -> k = 2 :: due(3) -> k = 3 :: due(4) -> k = 4 :: due(5) -> k = 5
		:: due(6) -> k = 6 :: due(7) -> k = 7 :: due(8) -> k = 8 :: due(9) -> k = 9 :: due(10) -> k = 10 :: due(11) -> k = 11 :: due(12) -> k = 12
		fi;
		if
		:: store[k] == STORED                                               /* its key has an answer: it is replayed to nobody */
		:: store[k] != STORED && (store[k] == IN_FLIGHT || !locked || isCreate(k)) -> execute(k); keep(k, r)
		:: store[k] == ABSENT && locked && !isCreate(k)                     /* lock_timeout, told to nobody */
		:: store[k] == IN_FLIGHT && faults > 0 -> faults--; keep(k, STORED_500)
		:: store[k] == IN_FLIGHT && faults > 0 -> faults--; execute(k); keep(k, STORED_500)
		:: store[k] == IN_FLIGHT && faults > 0 && halfable(k) -> faults--; hang(k); keep(k, STORED_500)
		fi;
		wire[k] = 0; k = 0; r = 0 }
	:: atomic { half[id] -> half[id] = 0;                                       /* rolls a half-done charge forward, or back */
		if
		:: st[id] = SUCC; take(id, method[id])
		:: st[id] == CANC -> take(id, method[id])                           /* the intent stays canceled, its charge stands */
		:: skip
		fi }
	:: atomic { st[id] == PROC ->
		if
		:: st[id] = SUCC; take(id, method[id])
		:: fail(id, method[id])
		fi }
	od
}

proctype Customer() {
end:	do
	:: atomic { secret && st[id] == RA ->                                       /* authenticates, or fails to */
		if
		:: st[id] = SUCC; take(id, method[id])
		:: fail(id, method[id])
		:: PROCESSING -> st[id] = PROC
		fi }
	:: atomic { own > 0 && secret && !half[id] && (st[id] == RPM || st[id] == RC || st[id] == RA) -> own--;
		if
		:: st[id] = SUCC; take(id, OWN_CARD)
		:: fail(id, OWN_CARD)
		fi }
	:: atomic { card < CARDS && pay == DECLINED && booking == HELD && now < HOLD_OVER ->    /* names another card */
		card++; seen = 0; pay = PENDING; charge = PENDING; attempts = 0; moved() }
	:: atomic { givesUp > 0 && booking == HELD -> givesUp--; endBooking(CANCEL) }
	od
}

/* Requests under one key: internal/bookings/accept.go Accept, claimWithin. key 0: free; PENDING: claimed, undecided. */
proctype Client() { byte tries;
again:	if
	:: atomic { key == 0 -> key = PENDING }                                     /* INSERT ... ON CONFLICT DO NOTHING */
	:: atomic { key != 0 -> skip }                                              /* a twin was first: wait for it */
	fi;
end:	if
	:: key == FINISHED                                                          /* answered: the booking, or its replay */
	:: atomic { tries < 2 -> tries++; goto again }                              /* the reply, or the process, is lost */
	:: atomic { key == 0 && tries == 2 -> goto again }
	fi
}
proctype Postgres() {
end:	do
	:: atomic { key == PENDING -> key = FINISHED; made++; booking = HELD; charge = PENDING;
		assert(made <= 1 || G1_two_bookings_of_one_key) }
	:: atomic { key == PENDING && faults > 0 -> faults--; key = 0 }             /* rolled back */
#ifdef KEY_EXPIRES_WITH_ITS_ANSWER
	:: atomic { key == FINISHED && now == PRUNED -> key = 0 }
#endif
	od
}

proctype Sweep() {                    /* payments/expire.go SweepHold */
end:	do
	:: atomic { now >= HOLD_OVER && booking == HELD -> endBooking(EXPIRE) }
	od
}

proctype Operator() {                 /* outbox/replay.go Replay: a new job, the count of attempts anew */
end:	do
	:: atomic { replays > 0 && charge == PENDING && attempts > 0 -> replays--; attempts = 0 }
	:: atomic { replays > 0 && cancel == PENDING && cancelAttempts > 0 -> replays--; cancelAttempts = 0 }
	od
}

proctype Clock() { byte k;
end:	do
	:: atomic { now < LAST -> now++;
		if
		:: now == PRUNED ->
			for (k : 0 .. KEYS-1) {
				if
				:: store[k] == STORED && early[k] -> store[k] = ABSENT; stored[k] = 0; early[k] = 0
				:: else
				fi
			}
			k = 0
		:: else
		fi }
	od
}

init { atomic {
	for (now : 0 .. KEYS-1) { store[now] = ABSENT }
	now = 0;
	if
	:: WORKERS > 0 -> run Engine(0, RECONCILER); run Engine(1, WATCH); run Engine(2, WORKER)
	:: else
	fi;
	if
	:: WORKERS > 1 -> run Engine(3, WORKER)
	:: else
	fi;
	run Provider(); run Customer(); run Clock(); run Sweep();
	if
	:: REPLAYS > 0 -> run Operator()
	:: else
	fi;
	if
	:: CLIENTS > 0 -> booking = 0; charge = 0; run Postgres(); run Client(); run Client()
	:: else
	fi } }

#ifdef LIVE
#define paid_ ((booking == CONFIRMED && pay == PAID) || (booking == ENDED && refund))
#define free_ (booking == ENDED && closed && total == 0)
ltl G5_every_doubt_ends { <>[] ((paid_ || free_) && charge == FINISHED && cancel != PENDING && cancel != IN_DOUBT) }
#endif
