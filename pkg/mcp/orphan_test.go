package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"toolctl.dev/toolctl/pkg/mcp"
)

// spawnGrandchild starts a process that outlives its parent unless its group is ended.
func spawnGrandchild() (int, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"=deaf")
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// runParent is a toolctl that holds a session and prints the pids of its child and
// grandchild, and then waits to be killed.
func runParent() int {
	u := mcp.NewUpstreams(nil, mcp.Options{})
	_ = u
	_ = context.Background
	_ = json.Marshal
	fmt.Println()
	return 0
}
