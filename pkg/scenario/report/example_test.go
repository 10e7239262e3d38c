package report_test

import (
	"log"
	"os"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/scenario/report"
)

func ExampleJUnit() {
	err := report.JUnit(os.Stdout, &scenario.Report{Scenarios: []scenario.Result{
		{Name: "sunny", Namespace: "default", Status: scenario.Passed, Source: v1.Source{File: "tests/weather.yaml", Line: 3}},
		{Name: "rain", Namespace: "default", Status: scenario.Skipped, Reason: "it judges nothing", Source: v1.Source{File: "tests/weather.yaml", Line: 20}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// <?xml version="1.0" encoding="UTF-8"?>
	// <testsuites name="toolctl test" time="0.000" tests="2" failures="0" errors="0">
	//   <testsuite name="tests/weather.yaml" tests="2" failures="0" errors="0" skipped="1" time="0.000" file="tests/weather.yaml">
	//     <testcase name="sunny" classname="default" time="0.000">
	//       <system-out>0 of 0 checks&#xA;</system-out>
	//     </testcase>
	//     <testcase name="rain" classname="default" time="0.000">
	//       <skipped message="0 of 0 checks: it judges nothing"></skipped>
	//       <system-out>0 of 0 checks: it judges nothing&#xA;</system-out>
	//     </testcase>
	//   </testsuite>
	// </testsuites>
}
