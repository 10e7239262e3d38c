package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/rollout"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

// toolText returns a tool whose description is the mark, which distinguishes its versions.
func toolText(name, mark string) string {
	return fmt.Sprintf("apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: %s}\nspec: {description: %q, input_schema: {type: object}, mock_result: 1}\n", name, mark)
}

// writeSet writes a file of n tools with one mark.
func writeSet(t *testing.T, file string, n int, mark string) {
	t.Helper()
	var docs []string
	for i := range n {
		docs = append(docs, toolText(fmt.Sprintf("tool-%02d", i), mark))
	}
	if err := os.WriteFile(file, []byte(strings.Join(docs, "---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// contents formats the objects of records, each with its mark.
func contents(records []store.Record) string {
	var out []string
	for _, r := range records {
		out = append(out, r.Key().Name+"="+r.Object.(*v1.Tool).Spec.Description)
	}
	return strings.Join(out, " ")
}

// roundsOf returns the number of rounds of a test: long with TOOLCTL_SOAK, few under the race detector, and otherwise
// the usual number.
func roundsOf(usual, long int) int {
	switch {
	case os.Getenv("TOOLCTL_SOAK") != "":
		return long
	case raceDetector:
		return 6
	}
	return usual
}

// killWhileWriting kills a program a moment after it has begun to write a file, unless the program ends first.
func killWhileWriting(cmd *exec.Cmd, file string, ended <-chan struct{}) (began bool) {
	state := func() (int64, time.Time) {
		info, err := os.Stat(file)
		if err != nil {
			return 0, time.Time{}
		}
		return info.Size(), info.ModTime()
	}
	size, at := state()
	for more := -1; more != 0; { // more is the number of further checks after the first write
		select {
		case <-ended:
			return more > 0
		default:
		}
		switch newSize, newAt := state(); {
		case more > 0:
			more--
		case newSize != size || !newAt.Equal(at):
			more = 1 + rand.IntN(300)
		}
	}
	_ = cmd.Process.Kill()
	return true
}

// TestKillApplyAndUndo kills the program at a random moment of an apply or an undo, every second time while it writes.
// The store must have the old or the new state, with the matching inventory and revisions. With TOOLCTL_SOAK it makes
// 200 rounds.
func TestKillApplyAndUndo(t *testing.T) {
	t.Parallel()
	rounds := roundsOf(24, 200)
	dir := t.TempDir()
	file, db := filepath.Join(dir, "set.yaml"), filepath.Join(dir, "state.db")
	apply := []string{"apply", "-f", file, "--set", "s", "--prune", "--store", db}
	writeSet(t, file, 30, "start")
	start := time.Now()
	if out, err := exec.Command("toolctl", apply...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	whole := time.Since(start)

	read := func(round int) (now string, newest store.Revision) {
		t.Helper()
		st, err := sqlite.Open(t.Context(), db, store.Options{})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		defer st.Close()
		all, err := st.Revisions(t.Context(), store.RevisionQuery{Newest: true})
		if err != nil || len(all) != 1 {
			t.Fatalf("round %d: %d sets, %v", round, len(all), err)
		}
		state, err := rollout.Inspect(t.Context(), st, all[0])
		if err != nil {
			t.Fatal(err)
		}
		list, err := st.List(t.Context(), store.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		held, err := st.RevisionObjects(t.Context(), "s", all[0].Number)
		if err != nil {
			t.Fatal(err)
		}
		now = contents(list.Records)
		if state.Changed != nil || state.Gone != nil || contents(state.Members) != now || contents(held) != now || all[0].Objects != list.Total {
			t.Fatalf("round %d: the inventory is not right:\nstore %s\nset %s\nrevision %d %s", round, now, contents(state.Members), all[0].Number, contents(held))
		}
		report, err := store.Check(t.Context(), st)
		if err != nil || len(report.Problems) > 0 {
			t.Fatalf("round %d: %v, %q", round, err, report.Problems)
		}
		return now, all[0]
	}
	carriedOut, writing := 0, 0
	before, last := read(0)
	earlier := "" // the state that an undo restores
	for round := 1; round <= rounds; round++ {
		args, want := apply, ""
		if round%3 == 0 && earlier != "" {
			args, want = []string{"rollout", "undo", "s", "--store", db}, earlier
		} else {
			size, mark := 20+rand.IntN(20), fmt.Sprint("round ", round)
			writeSet(t, file, size, mark)
			var objects []string
			for i := range size {
				objects = append(objects, fmt.Sprintf("tool-%02d=%s", i, mark))
			}
			want = strings.Join(objects, " ")
		}
		var out bytes.Buffer
		cmd := exec.Command("toolctl", args...)
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var err error
		if round%2 == 0 {
			ended, killed := make(chan struct{}), make(chan bool)
			go func() { killed <- killWhileWriting(cmd, db+"-wal", ended) }()
			err = cmd.Wait()
			close(ended)
			if <-killed {
				writing++
			}
		} else {
			kill := time.AfterFunc(rand.N(whole+whole/4), func() { _ = cmd.Process.Kill() })
			err = cmd.Wait()
			kill.Stop()
		}
		if err != nil && err.Error() != "signal: killed" {
			t.Fatalf("round %d: %q: %v: %s", round, args, err, &out)
		}
		now, newest := read(round)
		switch {
		case newest.Number == last.Number && now == before && err != nil:
		case newest.Number == last.Number+1 && now == want:
			carriedOut++
			earlier, before = before, now
		default:
			t.Fatalf("round %d: %q left revision %d after %d:\nwas  %s\nis   %s\nwant %s", round, args, newest.Number, last.Number, before, now, want)
		}
		last = newest
	}
	t.Logf("%d of %d were carried out before the kill; %d were killed after they had begun to write", carriedOut, rounds, writing)
	if rounds >= 100 && writing == 0 {
		t.Error("nothing was killed while it wrote")
	}
}

// TestTwoAppliers checks that of two processes that apply the same object to two sets at the same time, one succeeds,
// and the other gets an error and changes nothing; likewise for two plans. With TOOLCTL_SOAK it makes 100 rounds.
func TestTwoAppliers(t *testing.T) {
	t.Parallel()
	rounds := roundsOf(20, 100)
	dir := t.TempDir()
	db := filepath.Join(dir, "state.db")
	writeSet(t, filepath.Join(dir, "first.yaml"), 1, "start")
	toolctl := func(args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		code = run(t.Context(), append(args, "--store", db), bytes.NewReader(nil), &out, &errs)
		return code, out.String(), errs.String()
	}
	if code, _, errs := toolctl("apply", "-f", filepath.Join(dir, "first.yaml")); code != exitOK {
		t.Fatal(errs)
	}
	type outcome struct {
		code int
		errs string
	}
	both := func(command func(set string) []string) (outcomes [2]outcome) {
		t.Helper()
		var processes [2]*exec.Cmd
		var errs [2]bytes.Buffer
		for i, set := range []string{"a", "b"} {
			processes[i] = exec.Command("toolctl", append(command(set), "--store", db)...)
			processes[i].Stderr = &errs[i]
			if err := processes[i].Start(); err != nil {
				t.Fatal(err)
			}
		}
		for i, p := range processes {
			_ = p.Wait()
			outcomes[i] = outcome{p.ProcessState.ExitCode(), errs[i].String()}
		}
		return outcomes
	}
	for round := range rounds {
		shared := fmt.Sprint("shared-", round)
		file := func(set string) string { return filepath.Join(dir, set+".yaml") }
		plan := func(set string) string { return filepath.Join(dir, set+".json") }
		for _, set := range []string{"a", "b"} {
			text := toolText(fmt.Sprintf("own-%s-%d", set, round), set) + "---\n" + toolText(shared, set)
			if err := os.WriteFile(file(set), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		planned := round%2 == 1
		command := func(set string) []string { return []string{"apply", "-f", file(set), "--set", set} }
		loses := exitUsage
		if planned {
			for _, set := range []string{"a", "b"} {
				code, out, errs := toolctl("diff", "-f", file(set), "--set", set, "-o", "plan")
				if code != exitFailed {
					t.Fatalf("exit %d: %s", code, errs)
				}
				if err := os.WriteFile(plan(set), []byte(out), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			command = func(set string) []string { return []string{"apply", "--plan", plan(set)} }
			loses = exitInvalid
		}
		outcomes := both(command)
		winner := slices.IndexFunc(outcomes[:], func(o outcome) bool { return o.code == exitOK })
		if winner < 0 || outcomes[1-winner].code != loses {
			t.Fatalf("round %d: %+v, want one that is refused", round, outcomes)
		}
		if lost := outcomes[1-winner].errs; !strings.Contains(lost, "Tool default/"+shared) || !strings.Contains(lost, "nothing was applied") {
			t.Fatalf("round %d: the conflict is not named: %s", round, lost)
		}
		sets := []string{"a", "b"}
		won, lost := sets[winner], sets[1-winner]
		st, err := sqlite.Open(t.Context(), db, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rec, err := st.Get(t.Context(), v1.Key{Kind: v1.KindTool, Namespace: v1.DefaultNamespace, Name: shared})
		if err != nil || rec.Set != won || rec.Object.(*v1.Tool).Spec.Description != won {
			t.Fatalf("round %d: %s belongs to %q, want %q: %v", round, shared, rec.Set, won, err)
		}
		if _, err := st.Get(t.Context(), v1.Key{Kind: v1.KindTool, Namespace: v1.DefaultNamespace, Name: fmt.Sprintf("own-%s-%d", lost, round)}); err == nil {
			t.Fatalf("round %d: a part of what was refused is there", round)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
