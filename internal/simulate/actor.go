package simulate

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/jackc/pgx/v5"
)

// actor is one process at one piece of work. It is a coroutine: it runs while the schedule waits, and gives the turn back when
// it pauses or ends. So one at a time runs, and nothing but the seed says in which order.
type actor struct {
	name        string
	wake        chan bool // true: go on; false: die
	over        bool
	inTx        bool   // a transaction of it is open
	aboutToSend bool   // it pauses between the record of a send and the send
	cut         bool   // its connection was cut: an error of it has a cause
	died        bool   // as it was to
	bug         string // it panicked, and was not to die
}

var errDied = errors.New("the process died here")

// spawn starts an actor and lets it run to its first pause.
func (s *schedule) spawn(name string, work func(a *actor)) {
	s.actors++
	a := &actor{name: fmt.Sprintf("%s#%d", name, s.actors), wake: make(chan bool)}
	s.live = append(s.live, a)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				err, ok := v.(error)
				switch {
				case ok && errors.Is(err, errDied):
					a.died = true
				case s.harness != nil: // the simulation is over
				default:
					a.bug = fmt.Sprintf("%v\n%s", v, debug.Stack())
				}
			}
			a.over = true
			s.back <- struct{}{}
		}()
		if !<-a.wake {
			panic(errDied)
		}
		work(a)
	}()
	s.turn(a, true)
}

// turn gives an actor the turn until it pauses or ends.
func (s *schedule) turn(a *actor, alive bool) {
	s.current = a
	a.wake <- alive
	<-s.back
	s.current = nil
	if !a.over {
		return
	}
	for i, other := range s.live {
		if other == a {
			s.live = append(s.live[:i], s.live[i+1:]...)
			break
		}
	}
	switch {
	case a.bug != "":
		s.fail("panic", "%s: %s", a.name, a.bug)
	case a.died:
		s.tell("%s is dead", a.name)
	}
}

// pause is a moment at which others may act, if the seed says so; the actor may never go on.
func (s *schedule) pause(at string, likely float64) {
	a := s.current
	if a == nil || s.healing || a.inTx || !s.chance.percent(likely) {
		return
	}
	s.tell("%s pauses %s", a.name, at)
	a.aboutToSend = strings.HasPrefix(at, "before the send")
	s.back <- struct{}{}
	alive := <-a.wake
	if a.aboutToSend = false; !alive {
		panic(errDied)
	}
	s.tell("%s goes on %s", a.name, at)
}

// statement is told of every statement of an actor before it is sent: others may act before a transaction begins, and the
// connection may be cut.
func (s *schedule) statement(conn *pgx.Conn, sql string) {
	a := s.current
	if a == nil || sql == "-- ping" {
		return
	}
	idle, alive := conn.PgConn().TxStatus() == 'I', true
	if a.inTx = !idle; idle {
		alive = s.pauseForStatement(a)
	}
	a.inTx = strings.HasPrefix(sql, "begin") || !idle && sql != "commit" && sql != "rollback"
	if s.healing {
		return
	}
	c := s.cutting(sql == "commit")
	if !alive {
		c = cutBefore // a connection in hand cannot be left behind by a panic: who dies here is cut off
	}
	w, ok := conn.PgConn().Conn().(*wire)
	if c == noCut || !ok {
		return
	}
	what := "a statement"
	if sql == "commit" {
		what = "a COMMIT"
	}
	s.tell("%s of %s is %s, and its connection is gone", what, a.name, c)
	a.cut, a.inTx = true, false
	w.arm(c)
}

// cutting decides whether the next statement is cut.
func (s *schedule) cutting(commit bool) cut {
	switch {
	case commit && s.cutIn > 0:
		if s.cutIn--; s.cutIn == 0 {
			return s.cutAs
		}
	case commit && s.chance.percent(s.cuts), s.chance.percent(s.cuts / 20):
		return pick(s.chance, cutBefore, cutAfter)
	}
	return noCut
}

// pauseForStatement pauses with a connection in hand, and tells whether the process is to live on.
func (s *schedule) pauseForStatement(a *actor) bool {
	if s.healing || !s.chance.percent(s.statementPauses) {
		return true
	}
	s.tell("%s pauses before a statement", a.name)
	s.back <- struct{}{}
	alive := <-a.wake
	if alive {
		s.tell("%s goes on with its statement", a.name)
	}
	return alive
}
