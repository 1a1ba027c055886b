package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
)

// TestMain keeps the one node process that the CDK runs in.
func TestMain(m *testing.M) {
	code := m.Run()
	jsii.Close()
	os.Exit(code)
}

// resource is a resource of a template.
type resource struct {
	Type           string
	Properties     map[string]any
	DeletionPolicy string
	UpdatePolicy   any
}

// template is a synthesised stack.
type template map[string]resource

// synthesised is an installation with its templates.
type synthesised struct {
	options
	data, functions, workers, edge template
	memory                         map[string]float64 // MB of functions, by readMemory
	exports                        []any              // outputs of the data stack that others import
	stacks                         []awscdk.Stack
}

// fakeDist holds a binary of every function, as far as the CDK looks at it.
func fakeDist(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	mains, err := filepath.Glob("../functions/*/lambda")
	if err != nil || len(mains) < 10 {
		t.Fatalf("%d functions found: %v", len(mains), err)
	}
	files := []string{"container/gateway", "container/Dockerfile"}
	for _, m := range mains {
		files = append(files, filepath.Base(filepath.Dir(m))+"/bootstrap")
	}
	for _, f := range files {
		path := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("FROM scratch\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func synth(t *testing.T, context map[string]any) *synthesised {
	t.Helper()
	context["dist"] = fakeDist(t)
	app := awscdk.NewApp(&awscdk.AppProps{Context: &context, Outdir: jsii.String(t.TempDir()), AnalyticsReporting: jsii.Bool(false)})
	o, err := optionsOf(app)
	if err != nil {
		t.Fatal(err)
	}
	in := build(app, o)
	s := &synthesised{options: o, stacks: []awscdk.Stack{in.data.stack, in.functions.stack, in.workers.stack, in.edge.stack}}
	if in.firewall != nil {
		s.stacks = append(s.stacks, in.firewall)
	}
	for i, to := range []*template{&s.data, &s.functions, &s.workers, &s.edge} {
		raw, err := json.Marshal(assertions.Template_FromStack(s.stacks[i], nil).ToJSON())
		if err != nil {
			t.Fatal(err)
		}
		var whole struct {
			Resources template
			Outputs   map[string]any
		}
		if err := json.Unmarshal(raw, &whole); err != nil {
			t.Fatal(err)
		}
		*to = whole.Resources
		for _, o := range whole.Outputs {
			if i == 0 && at(o, "Export") != nil {
				s.exports = append(s.exports, o)
			}
		}
	}
	return s
}

// of gives the resources of a type, in the order of their ids.
func (tpl template) of(kind string) (ids []string, all []resource) {
	for id, r := range tpl {
		if r.Type == kind {
			ids = append(ids, id)
		}
	}
	sort.Strings(ids)
	for _, id := range ids {
		all = append(all, tpl[id])
	}
	return ids, all
}

// at walks into a value: names of members, numbers of elements.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
