package openapi_test

import (
	"context"
	"fmt"
	"log"

	"toolctl.dev/toolctl/pkg/openapi"
)

func ExampleParse() {
	doc, err := openapi.Parse([]byte(`
openapi: 3.1.0
info: {title: Weather API, version: "2"}
servers: [{url: https://api.example.com/v2}]
paths:
  /weather/{city}:
    get:
      operationId: getWeather
      summary: Weather now
      parameters: [{name: city, in: path, required: true, schema: {type: string}}]
      responses: {"200": {description: ok}}
`), "weather.yaml", "", nil)
	if err != nil {
		log.Fatal(err)
	}
	set, err := doc.Import(context.Background(), openapi.Options{Prefix: "weather-"})
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range set.Tools {
		fmt.Printf("%s: %s %s\n", t.Manifest.Metadata.Name, t.Manifest.Spec.HTTP.Method, t.Manifest.Spec.HTTP.URL)
	}
	// Output:
	// weather-get-weather: GET https://api.example.com/v2/weather/{{.city}}
}
