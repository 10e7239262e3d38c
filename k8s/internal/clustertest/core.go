package clustertest

import (
	"context"
	"strings"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// builtin is a type of a whole API server that this one serves too, as it would.
type builtin struct {
	gv           schema.GroupVersion
	name         string // of the resource
	object, list runtime.Object
}

// builtins are what the operator uses. Their clients write protobuf, so no custom resource would do.
var builtins = []builtin{
	{corev1.SchemeGroupVersion, "configmaps", &corev1.ConfigMap{}, &corev1.ConfigMapList{}},
	{coordination.SchemeGroupVersion, "leases", &coordination.Lease{}, &coordination.LeaseList{}},
	{eventsv1.SchemeGroupVersion, "events", &eventsv1.Event{}, &eventsv1.EventList{}},
}

// install serves it.
func (b builtin) install(s *genericapiserver.GenericAPIServer, etcd storagebackend.Config) error {
	sch := runtime.NewScheme()
	for _, version := range []string{b.gv.Version, runtime.APIVersionInternal} { // they are the same here
		sch.AddKnownTypes(schema.GroupVersion{Group: b.gv.Group, Version: version}, b.object, b.list)
	}
	metav1.AddToGroupVersion(sch, b.gv)
	if b.gv.Group != "" {
		metav1.AddToGroupVersion(sch, schema.GroupVersion{Version: "v1"}) // of the options of requests
	}
	if err := sch.SetVersionPriority(b.gv); err != nil {
		return err
	}
	codecs := serializer.NewCodecFactory(sch)
	etcd.Codec = codecs.LegacyCodec(b.gv)
	resource := schema.GroupResource{Group: b.gv.Group, Resource: b.name}
	every := strategy{sch, names.SimpleNameGenerator}
	store := &registry.Store{
		NewFunc:                   b.object.DeepCopyObject,
		NewListFunc:               b.list.DeepCopyObject,
		DefaultQualifiedResource:  resource,
		SingularQualifiedResource: schema.GroupResource{Group: b.gv.Group, Resource: strings.TrimSuffix(b.name, "s")},
		CreateStrategy:            every, UpdateStrategy: every, DeleteStrategy: every,
		TableConvertor: rest.NewDefaultTableConvertor(resource),
	}
	err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: generic.RESTOptions{
		StorageConfig: etcd.ForResource(resource), Decorator: generic.UndecoratedStorage, ResourcePrefix: "/" + b.name, DeleteCollectionWorkers: 1,
	}})
	if err != nil {
		return err
	}
	info := genericapiserver.NewDefaultAPIGroupInfo(b.gv.Group, sch, runtime.NewParameterCodec(sch), codecs)
	info.VersionedResourcesStorageMap[b.gv.Version] = map[string]rest.Storage{b.name: store}
	if b.gv.Group == "" {
		return s.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, &info)
	}
	return s.InstallAPIGroup(&info)
}

// strategy takes every object.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

func (strategy) NamespaceScoped() bool                                                 { return true }
func (strategy) AllowCreateOnUpdate(context.Context) bool                              { return false }
func (strategy) AllowUnconditionalUpdate(context.Context) bool                         { return true }
func (strategy) Canonicalize(runtime.Object)                                           {}
func (strategy) PrepareForCreate(context.Context, runtime.Object)                      {}
func (strategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object)      {}
func (strategy) Validate(context.Context, runtime.Object) field.ErrorList              { return nil }
func (strategy) ValidateUpdate(_ context.Context, _, _ runtime.Object) field.ErrorList { return nil }
func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string             { return nil }
func (strategy) WarningsOnUpdate(_ context.Context, _, _ runtime.Object) []string      { return nil }

// definitions are the types that the server knows; those of others are any object.
func definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := generatedopenapi.GetOpenAPIDefinitions(ref)
	open := common.OpenAPIDefinition{Schema: spec.Schema{
		SchemaProps:      spec.SchemaProps{Type: []string{"object"}},
		VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-preserve-unknown-fields": true}},
	}}
	for _, b := range builtins {
		all[util.GetCanonicalTypeName(b.object)], all[util.GetCanonicalTypeName(b.list)] = open, open
	}
	return all
}
