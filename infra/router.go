package main

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"gateway/shared/host/alias"
	"gateway/shared/host/placement"
	"gateway/shared/wire/azure"
)

//go:embed edge/router.js
var routerSource string

// maxRouter is how large a CloudFront function may be, in bytes.
const maxRouter = 10 << 10

// versionless are the beginnings of paths that clients also call without a version in
// front, when their base URL has none.
var versionless = []string{"chat", "completions", "embeddings", "messages", "model", "models", "openai", "responses", "upload", "v1alpha", "v1beta", "v1beta1"}

// mcpScope is the scope that clients of MCP ask for: All of shared/mcp/granted.
const mcpScope = "mcp"

// variable matches a path segment with a variable.
var variable = regexp.MustCompile(`\{[A-Za-z]+\}`)

// router is the code of the edge's function with the table filled in.
func router(o options) string {
	var routes struct {
		Container      bool     `json:"container"`
		Chat           string   `json:"chat"`
		Stream         []string `json:"stream"`
		Administration []string `json:"administration"`
		Config         []string `json:"config"` // names of the header that carries a config
		Versionless    []string `json:"versionless"`
		Azure          []string `json:"azure"` // operations that are called on Azure's deployments
		// Patterns are routes with variables that lie below paths of the administration but do
		// not belong to it: a method, an expression for their path, and their place.
		Patterns [][3]string `json:"patterns"`
		Address  string      `json:"address"` // the gateway's own address; "": the address that the request went to
		Scope    string      `json:"scope"`   // scope that clients of MCP ask for
	}
	routes.Address, routes.Scope = o.address(), mcpScope
	routes.Versionless, routes.Azure = versionless, azure.Operations
	routes.Container, routes.Chat, routes.Administration = o.hasContainer(), o.chat, administrationPrefixes()
	routes.Config = []string{"x-gateway-config"}
	aliases, err := alias.Parse(o.headerAliases)
	if err != nil {
		panic(err) // it was checked with the context
	}
	for _, a := range aliases {
		routes.Config = append(routes.Config, strings.ToLower(a)+"config")
	}
	for _, r := range placement.Table() {
		if r.Place == placement.Stream {
			routes.Stream = append(routes.Stream, r.Method+" "+r.Path)
		}
		if first, _, _ := strings.Cut(r.Path[1:], "/"); r.Place != placement.Buffered && strings.Contains(r.Path, "{") && slices.Contains(routes.Administration, first) {
			routes.Patterns = append(routes.Patterns, [3]string{r.Method, variable.ReplaceAllString(r.Path, "[^/]+"), string(r.Place)})
		}
	}
	table, err := json.Marshal(routes)
	if err != nil {
		panic(err) // strings only
	}
	return strings.Replace(routerSource, "{/*ROUTES*/}", string(table), 1)
}
