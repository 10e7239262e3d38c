package console

import (
	"fmt"
	"math"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/registry"
)

// maxSeries limits the number of tools with charts.
const maxSeries = 2000

// series counts the calls of a tool per minute, for a day; minutes without calls are left out.
type series struct{ minutes []minute }

type minute struct {
	at       int64 // minute since 1970
	calls    int
	failed   int
	sum, max float64 // milliseconds
}

// measure counts a call; the caller holds mu.
func (f *feed) measure(e registry.CallEvent) {
	if e.Tool == "" || e.Status != v1.StatusComplete && e.Status != v1.StatusFailed {
		return
	}
	key := toolKey{e.Namespace, e.Tool}
	s := f.stats[key]
	if s == nil {
		if len(f.stats) >= maxSeries {
			return
		}
		s = &series{}
		f.stats[key] = s
	}
	at := e.Time.Unix() / 60
	if n := len(s.minutes); n == 0 || s.minutes[n-1].at < at {
		s.minutes = append(s.minutes, minute{at: at})
	}
	i := len(s.minutes) - 1
	for i > 0 && s.minutes[i].at > at { // another call began later but ended earlier
		i--
	}
	m := &s.minutes[i]
	m.calls++
	if e.Status == v1.StatusFailed {
		m.failed++
	}
	m.sum += e.DurationMS
	m.max = max(m.max, e.DurationMS)
	for len(s.minutes) > 0 && s.minutes[0].at < at-24*60 {
		s.minutes = s.minutes[1:]
	}
}

// chart is a bar chart of calls over time, ready for SVG.
type chart struct {
	Label         string
	Calls, Failed int
	Mean, Max     float64
	Bars          []bar
	Top           int // largest number of calls in a bar
	From          time.Time
}

// bar is the calls of one interval.
type bar struct {
	X, Y, Width, Height   float64
	FailedY, FailedHeight float64
	MeanY, MeanHeight     float64 // average and maximum duration
	MostY, MostHeight     float64
	Text                  string
}

const (
	chartWidth  = 600.0
	chartHeight = 80.0
	leastScale  = 0.001 // in milliseconds
)

// charts returns the charts of a tool for the last hour and the last day; nil without calls.
func (f *feed) charts(namespace, name string) (hour, day *chart) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats[toolKey{namespace, name}]
	if s == nil {
		return nil, nil
	}
	now := f.now().Unix() / 60
	return drawn(s.minutes, now, 60, 60, "the last hour"), drawn(s.minutes, now, 24*60, 48, "the last day")
}

// overall returns the chart of all tools that a person sees, for the last hour.
func (f *feed) overall(sees func(namespace, name string) bool) *chart {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now().Unix() / 60
	var all []minute
	for key, s := range f.stats {
		if sees(key.namespace, key.name) {
			all = append(all, s.minutes...)
		}
	}
	return drawn(all, now, 60, 60, "the last hour")
}

// drawn returns a chart of the minutes before now; nil without calls.
func drawn(minutes []minute, now, span int64, bars int, label string) *chart {
	c := &chart{Label: label, From: time.Unix((now-span)*60, 0)}
	parts := make([]minute, bars)
	each := span / int64(bars)
	var sum float64
	for _, m := range minutes {
		i := (m.at - (now - span + 1)) / each
		if m.at <= now-span || i >= int64(bars) {
			continue
		}
		p := &parts[i]
		p.calls, p.failed, p.sum, p.max = p.calls+m.calls, p.failed+m.failed, p.sum+m.sum, max(p.max, m.max)
		c.Calls, c.Failed, c.Max, sum = c.Calls+m.calls, c.Failed+m.failed, max(c.Max, m.max), sum+m.sum
		c.Top = max(c.Top, p.calls)
	}
	if c.Calls == 0 {
		return nil
	}
	c.Mean = sum / float64(c.Calls)
	width := chartWidth / float64(bars)
	round := func(x float64) float64 { return math.Round(x*100) / 100 }
	for i, p := range parts {
		if p.calls == 0 {
			continue
		}
		height := chartHeight * float64(p.calls) / float64(c.Top)
		failed := chartHeight * float64(p.failed) / float64(c.Top)
		mean, most := chartHeight*p.sum/float64(p.calls)/max(c.Max, leastScale), chartHeight*p.max/max(c.Max, leastScale)
		at := time.Unix((now-span+1+int64(i)*each)*60, 0).UTC().Format("15:04 UTC")
		c.Bars = append(c.Bars, bar{
			X: round(float64(i) * width), Width: round(max(1, width-1)), Y: round(chartHeight - height), Height: round(height),
			FailedY: round(chartHeight - failed), FailedHeight: round(failed),
			MeanY: round(chartHeight - mean), MeanHeight: round(mean), MostY: round(chartHeight - most), MostHeight: round(most),
			Text: fmt.Sprintf("%s: %s, %d failed, on average %s, at most %s", at, clip.Count(p.calls, "call"), p.failed, clip.Milliseconds(p.sum/float64(p.calls)), clip.Milliseconds(p.max)),
		})
	}
	return c
}
