package main

import (
	"encoding/json"
	"fmt"
	"strings"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/schemagen"
)

const notice = "# Generated from schemas/ by go generate ./crds in k8s/; do not edit.\n"

// generate returns the files of the CRDs by their names, from the source in the repository
// whose top folder is root.
func generate(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, info := range v1.KindInfos() {
		crd, err := definition(root, info)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", info.Kind, err)
		}
		if files[info.Name+".yaml"], err = print(crd); err != nil {
			return nil, err
		}
	}
	var err error
	files["promptconfigs.yaml"], err = print(promptConfigs())
	return files, err
}

func print(crd *apiext.CustomResourceDefinition) ([]byte, error) {
	raw, err := json.Marshal(crd)
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	delete(doc, "status") // it is the server's
	text, err := yaml.Marshal(doc)
	return append([]byte(notice), text...), err
}

// definition is the CRD of a kind.
func definition(root string, info v1.KindInfo) (*apiext.CustomResourceDefinition, error) {
	s, err := schemagen.Inline(root, info.Kind)
	if err != nil {
		return nil, err
	}
	spec, err := convert("spec", s.Properties.Get("spec"))
	if err != nil {
		return nil, err
	}
	group, version, _ := strings.Cut(v1.APIVersion, "/")
	return crd(group, version, apiext.CustomResourceDefinitionNames{
		Kind: info.Kind, ListKind: info.Kind + "List", Singular: info.Singular(), Plural: info.Name,
		ShortNames: info.Short, Categories: []string{"toolctl"},
	}, s.Description, *spec, columns(info.Kind)), nil
}

// promptConfigs is the CRD of PromptKit's prompts, which toolctl reads as prompts. Their
// fields are PromptKit's, so any is taken.
func promptConfigs() *apiext.CustomResourceDefinition {
	return crd(v1.PromptKitGroup, "v1alpha1", apiext.CustomResourceDefinitionNames{
		Kind: "PromptConfig", ListKind: "PromptConfigList", Singular: "promptconfig", Plural: "promptconfigs", Categories: []string{"toolctl"},
	}, "PromptConfig is a prompt of PromptKit, read as a Prompt of toolctl.", apiext.JSONSchemaProps{
		Description: "spec is as PromptKit has it.", Type: "object", XPreserveUnknownFields: yes(),
	}, columns(v1.KindPrompt))
}

func crd(group, version string, names apiext.CustomResourceDefinitionNames, text string, spec apiext.JSONSchemaProps, columns []apiext.CustomResourceColumnDefinition) *apiext.CustomResourceDefinition {
	return &apiext.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: names.Plural + "." + group},
		Spec: apiext.CustomResourceDefinitionSpec{
			Group: group, Names: names, Scope: apiext.NamespaceScoped,
			Versions: []apiext.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true,
				Schema: &apiext.CustomResourceValidation{OpenAPIV3Schema: &apiext.JSONSchemaProps{
					Description: text, Type: "object", Required: []string{"spec"},
					Properties: map[string]apiext.JSONSchemaProps{
						"apiVersion": {Type: "string", Description: "apiVersion is the version of the manifest's format."},
						"kind":       {Type: "string", Description: "kind is the kind of object."},
						"metadata":   {Type: "object"},
						"spec":       spec,
						"status":     status(),
					},
				}},
				Subresources:             &apiext.CustomResourceSubresources{Status: &apiext.CustomResourceSubresourceStatus{}},
				AdditionalPrinterColumns: columns,
			}},
		},
	}
}

// status is what toolctl-operator writes.
func status() apiext.JSONSchemaProps {
	text := func(description string) apiext.JSONSchemaProps {
		return apiext.JSONSchemaProps{Type: "string", Description: description}
	}
	number := func(description string) apiext.JSONSchemaProps {
		return apiext.JSONSchemaProps{Type: "integer", Format: "int64", Description: description}
	}
	condition := apiext.JSONSchemaProps{
		Type: "object", Required: []string{"type", "status", "lastTransitionTime", "reason", "message"},
		Properties: map[string]apiext.JSONSchemaProps{
			"type":               text("type is the name of the condition."),
			"status":             {Type: "string", Description: "status is True, False or Unknown.", Enum: values("True", "False", "Unknown")},
			"reason":             text("reason says why, in one word."),
			"message":            text("message says why, for people."),
			"observedGeneration": number("observedGeneration is the generation that the condition is about."),
			"lastTransitionTime": {Type: "string", Format: "date-time", Description: "lastTransitionTime is when the status last changed."},
		},
	}
	violation := apiext.JSONSchemaProps{
		Type: "object", Required: []string{"message"},
		Properties: map[string]apiext.JSONSchemaProps{
			"path":     text("path is the field, as a JSON pointer."),
			"severity": text("severity is error or warning."),
			"expected": text("expected is what belongs there."),
			"got":      text("got is what is there."),
			"message":  text("message says what is wrong and what to do."),
		},
	}
	byKey := "map"
	return apiext.JSONSchemaProps{
		Description: "status is what toolctl-operator made of the object.", Type: "object",
		Properties: map[string]apiext.JSONSchemaProps{
			"observedGeneration": number("observedGeneration is the generation that the status is about."),
			"storeVersion":       number("storeVersion is the resourceVersion of the object in toolctl's store."),
			"conditions": {
				Type: "array", Description: "conditions say whether the object is in the store and ready.", XListType: &byKey, XListMapKeys: []string{"type"},
				Items: &apiext.JSONSchemaPropsOrArray{Schema: &condition},
			},
			"violations": {
				Type: "array", Description: "violations are what 'toolctl validate' says of the object.",
				Items: &apiext.JSONSchemaPropsOrArray{Schema: &violation},
			},
		},
	}
}

// columns are what kubectl get prints.
func columns(kind string) []apiext.CustomResourceColumnDefinition {
	col := func(name, typ, path string, priority int32) apiext.CustomResourceColumnDefinition {
		return apiext.CustomResourceColumnDefinition{Name: name, Type: typ, JSONPath: path, Priority: priority}
	}
	var own []apiext.CustomResourceColumnDefinition
	switch kind {
	case v1.KindTool:
		own = append(own, col("Mode", "string", ".spec.mode", 1), col("Description", "string", ".spec.description", 1))
	case v1.KindPrompt:
		own = append(own, col("Description", "string", ".spec.description", 1))
	case v1.KindMCPServer:
		own = append(own, col("URL", "string", ".spec.url", 0), col("Command", "string", ".spec.command", 0), col("Description", "string", ".spec.description", 1))
	case v1.KindToolPolicy:
		own = append(own, col("Mode", "string", ".spec.mode", 0))
	case v1.KindToolset, v1.KindScenario:
		own = append(own, col("Description", "string", ".spec.description", 1))
	}
	ready := `.status.conditions[?(@.type=="Ready")]`
	return append([]apiext.CustomResourceColumnDefinition{
		col("Ready", "string", ready+".status", 0), col("Reason", "string", ready+".reason", 0),
	}, append(own, col("Message", "string", ready+".message", 1), col("Age", "date", ".metadata.creationTimestamp", 0))...)
}
