package replica_test

import (
	"context"
	"fmt"

	"toolctl.dev/toolctl/internal/seal"
	"toolctl.dev/toolctl/pkg/replica"
	"toolctl.dev/toolctl/pkg/store/memory"
)

func Example() {
	st := memory.New(memory.Options{})
	defer st.Close()
	m, err := replica.Join(context.Background(), replica.Options{Keys: seal.Random(), Leases: st, Address: "http://10.0.0.7:8080"})
	if err != nil {
		fmt.Println(err)
		return
	}
	m.Run()
	defer m.Leave()
	owner, session, ok := m.OpenSession(m.SealSession([]byte("a session")))
	fmt.Println(owner == m.ID(), string(session), ok)
	// Output: true a session true
}
