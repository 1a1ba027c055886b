package basic

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"gateway/shared/guard/judge"
)

type modelData struct {
	Model       string   `json:"currentModel"`
	Models      []string `json:"models"`
	Not         bool     `json:"not"`
	Verdict     bool     `json:"verdict"`
	Explanation string   `json:"explanation"`
}

func (d *modelData) judged(in bool) judge.Verdict {
	d.Verdict, d.Explanation = in != d.Not, "The model is not in the list"
	if in {
		d.Explanation = "The model is in the list"
	}
	return judge.Verdict{Pass: d.Verdict, Data: d}
}

// modelList passes the models in a list; with not, all others.
func modelList(raw map[string]json.RawMessage) judge.Func {
	models, ok := judge.Read[[]string](raw, "models")
	not := judge.Get(raw, "not", false)
	if !ok || len(models) == 0 {
		return constant(failed("Missing models"))
	}
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		if s.Model == "" {
			return failed("Missing model in the request")
		}
		d := &modelData{Model: s.Model, Models: models, Not: not}
		return d.judged(slices.Contains(models, s.Model))
	}
}

// rules maps metadata values to lists of models.
type rules struct {
	Defaults []string                       `json:"defaults"`
	Metadata map[string]map[string][]string `json:"metadata"`
}

// modelRules passes the models that the metadata of the request allows. If no rule matches, it
// passes the default models. * means every model.
func modelRules(raw map[string]json.RawMessage) judge.Func {
	r, ok := judge.Object[rules](raw, "rules")
	not := judge.Get(raw, "not", false)
	if !ok {
		return constant(failed("Missing rules"))
	}
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		if s.Model == "" {
			return failed("Missing model in the request")
		}
		var models []string
		for key, values := range r.Metadata {
			value, has := s.Metadata[key]
			if !has {
				continue
			}
			for _, value := range valuesOf(value) {
				models = append(models, values[value]...)
			}
		}
		if len(models) == 0 {
			models = r.Defaults
		}
		if len(models) == 0 {
			return failed("No rule applies to this request, and there are no defaults")
		}
		d := &modelData{Model: s.Model, Models: models, Not: not}
		return d.judged(slices.Contains(models, s.Model) || slices.Contains(models, "*"))
	}
}

// valuesOf returns the values of a metadata entry, which may be a JSON list.
func valuesOf(said string) []string {
	var list []string
	if strings.HasPrefix(said, "[") && json.Unmarshal([]byte(said), &list) == nil {
		return list
	}
	return []string{said}
}

type typesData struct {
	Current     string   `json:"currentRequestType"`
	Allowed     []string `json:"allowedTypes"`
	Blocked     []string `json:"blockedTypes"`
	Mode        string   `json:"mode"`
	Source      string   `json:"source"`
	Verdict     bool     `json:"verdict"`
	Explanation string   `json:"explanation"`
}

// requestTypes passes request types that are allowed and not blocked. A passed-through request
// has the types that its path reaches at the provider, and the type proxy. An empty list is
// replaced by the list in the metadata: supported_endpoints, blocked_endpoints.
func requestTypes(raw map[string]json.RawMessage) judge.Func {
	allowed, blocked := listed(raw["allowedTypes"]), listed(raw["blockedTypes"])
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		kinds := s.Endpoints
		if len(kinds) == 0 {
			kinds = []string{s.Kind}
		}
		d := &typesData{Current: kinds[0], Allowed: allowed, Blocked: blocked, Source: "default"}
		if len(allowed)+len(blocked) > 0 {
			d.Source = "parameters"
		}
		if len(allowed) == 0 {
			d.Allowed = split(s.Metadata["supported_endpoints"])
		}
		if len(blocked) == 0 {
			d.Blocked = split(s.Metadata["blocked_endpoints"])
		}
		if d.Source == "default" && len(d.Allowed)+len(d.Blocked) > 0 {
			d.Source = "metadata"
		}
		for _, t := range d.Allowed {
			if slices.Contains(d.Blocked, t) {
				return failed("A type of request is both allowed and blocked: " + excerpt(t))
			}
		}
		switch a, b := len(d.Allowed) > 0, len(d.Blocked) > 0; {
		case a && b:
			d.Mode = "combined"
		case a:
			d.Mode = "allowlist"
		case b:
			d.Mode = "blocklist"
		default:
			d.Mode = "unrestricted"
		}
		switch {
		case slices.Contains(d.Blocked, s.Kind) || slices.ContainsFunc(kinds, func(kind string) bool { return slices.Contains(d.Blocked, kind) }):
			d.Explanation = "The type of the request is blocked"
		case len(d.Allowed) > 0 && slices.ContainsFunc(kinds, func(kind string) bool { return !slices.Contains(d.Allowed, kind) }):
			d.Explanation = "The type of the request is not among those allowed"
		default:
			d.Verdict, d.Explanation = true, "The type of the request is allowed"
		}
		return judge.Verdict{Pass: d.Verdict, Data: d}
	}
}

// listed returns a list of strings, or the parts of a comma-separated string.
func listed(raw json.RawMessage) []string {
	var list []string
	var text string
	if json.Unmarshal(raw, &list) == nil {
		return orNone(list)
	}
	_ = json.Unmarshal(raw, &text)
	return split(text)
}

func split(text string) []string {
	list := []string{}
	if strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &list) == nil {
		return orNone(list)
	}
	for _, e := range strings.Split(text, ",") {
		if e = strings.TrimSpace(e); e != "" {
			list = append(list, e)
		}
	}
	return list
}

func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
