package diff

import "toolctl.dev/toolctl/internal/sarif"

// meanings lists the classes from mildest to worst, with their meaning for those who rely on the
// old side and their severity in code scanning services.
var meanings = []struct {
	class   Class
	summary string
	level   sarif.Level
}{
	{Neutral, "Calls do not change; models may read a different text.", sarif.Note},
	{Compatible, "It is proven that nothing stops working.", sarif.Note},
	{Unknown, "Neither a witness nor a proof was found.", sarif.Warning},
	{Risky, "Only properties that an open object does not declare stop working, or calls have less time.", sarif.Warning},
	{Looser, "A policy, a hint or consent allows more.", sarif.Warning},
	{Tighter, "A policy, a hint or consent allows less.", sarif.Warning},
	{Breaking, "The witness worked before and no longer does.", sarif.Error},
}

// SARIF returns the report in the Static Analysis Results Interchange Format 2.1.0, to be encoded
// as JSON, with a rule for each class and a result for each reason of a change. version is the
// version of the program, or "".
func (r *Report) SARIF(version string) any {
	const page = "https://toolctl.dev/docs/diff"
	d := sarif.Driver{Name: "toolctl diff", Version: version, URI: page}
	levels := map[Class]sarif.Level{}
	for _, m := range meanings {
		levels[m.class] = m.level
		d.Rules = append(d.Rules, sarif.Rule{ID: string(m.class), Summary: m.summary, Help: m.summary, URI: page, Level: m.level})
	}
	var results []sarif.Result
	for i := range r.Changes {
		c := &r.Changes[i]
		add := func(result sarif.Result, text string) {
			result.Object, result.Message = c.Key(), string(c.Action)+" "+c.name()+": "+oneLine(text)
			results = append(results, result)
		}
		for _, why := range c.Reasons {
			add(sarif.Result{Rule: string(why.Class), Level: levels[why.Class], Source: c.place(why), Path: why.Pointer}, why.text())
		}
		for _, text := range c.Abandoned {
			add(sarif.Result{Rule: string(Tighter), Level: sarif.Warning, Source: c.Source}, text)
		}
	}
	return sarif.Log(d, results)
}
