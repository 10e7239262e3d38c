package main

import (
	"github.com/spf13/pflag"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/permit"
)

// bindPermit adds the flags for what manifests may do. Their help begins with where.
func (a *app) bindPermit(f *pflag.FlagSet, where string) {
	for _, p := range permit.Flags() {
		if p.Name == permit.PrivateNetworkFlag {
			f.Var(privateNetwork{p.Value(a.conf.Permit), &a.conf.Gateway.AllowPrivateNetwork}, p.Name, where+"let HTTP tools and MCP servers reach loopback and private addresses; with =`NAMESPACES`, only manifests of these that "+p.What+", as with --allow-exec ($"+p.Variable+")")
			f.Lookup(p.Name).NoOptDefVal = "true"
			continue
		}
		f.Var(p.Value(a.conf.Permit), p.Name, where+"let manifests of these `NAMESPACES` "+p.What+"; * is all (default: all for files and a private store, none for PostgreSQL) ($"+p.Variable+")")
	}
	f.StringSliceVar(&a.conf.Gateway.AllowEnv, "allow-env", nil, where+"let manifests read only these environment `VARIABLES`, such as CRM_*,CITIES_TOKEN (default: all; they may never read TOOLCTL_*, PG* and OTEL_*) ($"+action.AllowEnvVariable+")")
}

// bindNetwork adds the flags for what manifests may do and what tools may reach. Their help begins with where.
func (a *app) bindNetwork(f *pflag.FlagSet, where string) {
	a.bindPermit(f, where)
	f.StringArrayVar(&a.conf.Gateway.AllowNetwork, "allow-network", nil, where+"let HTTP tools and MCP servers reach `CIDR|HOST[:PORT]`, such as 10.0.0.0/8 or db.internal:5432; may be repeated ($"+action.AllowNetworkVariable+": separated by commas)")
}

// bindEmbeddings binds the flags of the endpoint of embeddings.
func (a *app) bindEmbeddings(f *pflag.FlagSet) {
	f.StringVar(&a.conf.Embeddings.URL, "embeddings-url", "", "endpoint of the form of OpenAI's /v1/embeddings for a second rank by meaning, such as http://localhost:11434/v1/embeddings; it receives the texts of the tools and the queries ($"+action.EmbeddingsKeyVariable+": its key)")
	f.StringVar(&a.conf.Embeddings.Model, "embeddings-model", "", "model to request from the endpoint, such as nomic-embed-text (default: none, for endpoints with one model)")
}

// privateNetwork is the flag --allow-private-network: a list of namespaces, or without a value all of them.
type privateNetwork struct {
	permit.Namespaces
	all *bool
}

func (p privateNetwork) Set(text string) error {
	if text == "true" || text == "false" {
		*p.all = text == "true"
		return nil
	}
	return p.Namespaces.Set(text)
}
