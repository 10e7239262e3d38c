package server

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// The number of remembered sessions is limited, and exceeding the limit does not give a new turn.
func TestTurnsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(time.Minute)
		turns.most = 100
		kept, end := turns.begin("kept")
		for i := range 99 {
			name, end := turns.begin(fmt.Sprint(i))
			if name == "" {
				t.Fatalf("session %d has no turn of its own", i)
			}
			end()
		}
		for range 2 {
			if name, end := turns.begin("one more"); name != "" {
				t.Errorf("beyond the bound: turn %q", name)
			} else {
				end()
			}
		}
		if len(turns.sessions) != 100 {
			t.Errorf("%d sessions are remembered", len(turns.sessions))
		}
		time.Sleep(time.Minute)
		name, endOther := turns.begin("one more")
		if name == "" || len(turns.sessions) != 2 {
			t.Errorf("after a minute: turn %q, %d sessions are remembered", name, len(turns.sessions))
		}
		endOther()
		if again, end := turns.begin("kept"); again != kept {
			t.Errorf("a call was under way: turn %q, then %q", kept, again)
		} else {
			end()
		}
		turns.forget("kept")
		end() // of a session that has ended
		if len(turns.sessions) != 1 {
			t.Errorf("%d sessions are remembered", len(turns.sessions))
		}
	})
}
