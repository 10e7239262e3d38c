// Package report writes the outcome of scenarios as text and in the formats of CI systems, and saves it for
// the console.
package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/scenario"
)

// The elements of a JUnit report as in the Jenkins schema (junit-10.xsd), which CI systems read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Time     string       `xml:"time,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		File     string      `xml:"file,attr,omitempty"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name      string        `xml:"name,attr"`
		Class     string        `xml:"classname,attr"`
		Time      string        `xml:"time,attr"`
		Skipped   *junitSkipped `xml:"skipped"`
		Errors    []junitTrace  `xml:"error"`
		Failures  []junitTrace  `xml:"failure"`
		SystemOut string        `xml:"system-out,omitempty"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
	junitTrace struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes a report with one suite for each file, one case for each scenario, and one skipped case
// for each assertion that is not judged.
func JUnit(w io.Writer, r *scenario.Report) error {
	all := junitSuites{Name: "toolctl test", Tests: len(r.Scenarios)}
	var total float64
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		file := s.Source.File
		j := slices.IndexFunc(all.Suites, func(have junitSuite) bool { return have.File == file })
		if j < 0 {
			j = len(all.Suites)
			all.Suites = append(all.Suites, junitSuite{Name: file, File: file})
		}
		suite, c := &all.Suites[j], junitCaseOf(s)
		suite.Cases = append(suite.Cases, c)
		suite.Tests++
		total += s.DurationMS
		if s.Status == scenario.Passed || s.Status == scenario.Failed {
			for _, u := range s.Unjudged { // programs that read only the counts must notice unjudged assertions
				suite.Cases = append(suite.Cases, junitCase{Name: s.Name + ": " + v1.FieldPath(u.Field) + " " + u.Type, Class: s.Namespace, Time: seconds(0),
					Skipped: &junitSkipped{Message: "not judged: " + u.Reason}})
				suite.Tests++
				suite.Skipped++
				all.Tests++
			}
		}
		switch s.Status {
		case scenario.Failed:
			suite.Failures++
			all.Failures++
		case scenario.Invalid:
			suite.Errors++
			all.Errors++
		case scenario.Skipped:
			suite.Skipped++
		}
	}
	for i := range all.Suites {
		var ms float64
		for j := range r.Scenarios {
			if r.Scenarios[j].Source.File == all.Suites[i].File {
				ms += r.Scenarios[j].DurationMS
			}
		}
		all.Suites[i].Time = seconds(ms)
	}
	all.Time = seconds(total)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(ms float64) string { return strconv.FormatFloat(ms/1000, 'f', 3, 64) }

func junitCaseOf(s *scenario.Result) junitCase {
	c := junitCase{Name: s.Name, Class: s.Namespace, Time: seconds(s.DurationMS)}
	for _, f := range s.Failures {
		t := junitTrace{Message: f.String(), Type: f.What, Text: f.String()}
		if !f.Source.IsZero() {
			t.Text = f.Source.String() + ": " + t.Text
		}
		if s.Status == scenario.Invalid {
			c.Errors = append(c.Errors, t)
		} else {
			c.Failures = append(c.Failures, t)
		}
	}
	if s.Status == scenario.Skipped {
		c.Skipped = &junitSkipped{Message: s.Judgement()}
	}
	var out strings.Builder
	fmt.Fprintln(&out, s.Judgement())
	for _, w := range s.Warnings {
		fmt.Fprintln(&out, w)
	}
	c.SystemOut = out.String()
	return c
}
