package clustertest

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"sync"

	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"
)

const adminName = "admin"

// users knows who sends a request, by its token, and what they may do.
type users struct {
	address, serverName string
	ca                  []byte

	mu     sync.Mutex
	names  map[string]string // by token
	rules  map[string][]rbac.PolicyRule
	denied []string
}

func newUsers() *users {
	return &users{names: map[string]string{}, rules: map[string][]rbac.PolicyRule{
		adminName: {{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}, {Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
	}}
}

// User is the configuration of a client of that name, who may do what the rules say.
func (c *Cluster) User(name string, rules ...rbac.PolicyRule) *rest.Config {
	u := c.users
	u.mu.Lock()
	defer u.mu.Unlock()
	token := rand.Text()
	u.names[token] = name
	if name != adminName {
		u.rules[name] = rules
	}
	return &rest.Config{
		Host: "https://" + u.address, BearerToken: token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: u.ca, ServerName: u.serverName},
	}
}

// Denied returns what users asked for and might not do.
func (c *Cluster) Denied() []string {
	c.users.mu.Lock()
	defer c.users.mu.Unlock()
	return slices.Clone(c.users.denied)
}

// AuthenticateRequest implements [authenticator.Request].
func (u *users) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	u.mu.Lock()
	defer u.mu.Unlock()
	name, ok := u.names[token]
	return &authenticator.Response{User: &user.DefaultInfo{Name: name, Groups: []string{user.AllAuthenticated}}}, ok, nil
}

// authorize is an [authorizer.AuthorizerFunc].
func (u *users) authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains(a.GetUser().GetGroups(), user.SystemPrivilegedGroup) || !a.IsResourceRequest() && a.IsReadOnly() { // as system:discovery
		return authorizer.DecisionAllow, "", nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if slices.ContainsFunc(u.rules[a.GetUser().GetName()], func(r rbac.PolicyRule) bool { return allows(r, a) }) {
		return authorizer.DecisionAllow, "", nil
	}
	u.denied = append(u.denied, strings.Join([]string{a.GetUser().GetName(), a.GetVerb(), a.GetAPIGroup() + "/" + a.GetResource() + "/" + a.GetSubresource(), a.GetPath()}, " "))
	return authorizer.DecisionDeny, "no rule of " + a.GetUser().GetName() + " allows it", nil
}

// allows reports whether a rule allows a request, as RBAC has it.
func allows(r rbac.PolicyRule, a authorizer.Attributes) bool {
	has := func(list []string, s string) bool { return slices.Contains(list, s) || slices.Contains(list, "*") }
	if !has(r.Verbs, a.GetVerb()) {
		return false
	}
	if !a.IsResourceRequest() {
		return has(r.NonResourceURLs, a.GetPath())
	}
	resource := a.GetResource()
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	return has(r.APIGroups, a.GetAPIGroup()) && has(r.Resources, resource) && (len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.GetName()))
}
