package migrate

import (
	"fmt"
	"maps"
	"slices"

	"gateway/local/declare"
	"gateway/local/document"
)

// Statuses after which another model is tried.
var (
	failed   = []any{401, 403, 404, 408, 429, 500, 502, 503, 504, 529}
	rejected = []any{400, 413, 422}
)

// Most targets of one node, and nodes of one config.
const (
	maxNested = 50
	maxNodes  = 4000
)

// ConfigName is the name of the config that routes bare model names.
const ConfigName = "Imported models"

// writeRouter writes the config that routes requests for bare model names. It becomes the
// default of the workspace. Any other model is requested as @slug/model, as before.
func writeRouter(l *importer) error {
	for _, f := range l.shared.aliases {
		readAlias(l, f)
	}
	if len(l.groups) == 0 {
		return nil
	}
	var conditions, targets []any
	nodes := 0
	fallback := "other"
	for _, g := range l.groups {
		if g.name == "*" {
			conditions = append(conditions, map[string]any{"query": map[string]any{"params.model": map[string]any{"$regex": "^@"}}, "then": "other"})
			fallback = "any model"
		}
	}
	for _, g := range l.groups {
		node := groupNode(l, g, nodes > maxNodes/2)
		if nodes += count(node); nodes > maxNodes {
			return document.Errorf(g.node.At, "", "the models and their fallbacks are too many for one config")
		}
		node["name"] = declare.Escape(g.name)
		if g.name == "*" {
			node["name"] = fallback
		} else {
			conditions = append(conditions, map[string]any{"query": map[string]any{"params.model": map[string]any{"$eq": declare.Escape(g.name)}}, "then": declare.Escape(g.name)})
		}
		targets = append(targets, node)
	}
	config := map[string]any{"strategy": map[string]any{"mode": "conditional", "conditions": conditions, "default": fallback}, "targets": append(targets, map[string]any{"name": "other", "passthrough": true})}
	setDefaults(l, config)
	for _, n := range []string{"input_guardrails", "output_guardrails"} {
		if list := l.attached[n]; len(list) > 0 {
			config[n] = list
		}
	}
	l.add("configs", map[string]any{"slug": l.origin + "-models", "name": ConfigName, "config": config, "is_default": 1})
	return nil
}

// readAlias adds a second name of a group.
func readAlias(l *importer, f document.Field) {
	to := f.Value
	if to.Kind() == document.Map {
		to = f.Value.Get("model")
		l.mapped(f.Value.Get("hidden"), "aliases are not listed")
	}
	g := l.byName[to.Scalar()]
	if g == nil {
		l.not(f.Value, "model_list has no such model")
		return
	}
	if l.byName[f.Name] == nil {
		a := groupOf(l, f.Name, f.Value)
		a.deployments = g.deployments
	}
	l.mapped(f.Value, "second name of the model")
}

// setDefaults sets what all targets inherit.
func setDefaults(l *importer, config map[string]any) {
	s := &l.shared
	if s.hasRetry {
		config["retry"] = s.retry(s.retries)
	}
	if s.timeout > 0 {
		config["request_timeout"] = s.timeout
	}
	if s.first > 0 {
		config["first_token_timeout"] = s.first
	}
	if s.threshold > 0 || s.cooldown > 0 {
		config["cb_config"] = map[string]any{"failure_threshold": max(s.threshold, 1), "cooldown_interval": max(s.cooldown, minCooldown)}
	}
	if s.cache == nil {
		return
	}
	cache := maps.Clone(s.cache)
	if name, semantic := cache["embedding group"]; semantic {
		delete(cache, "embedding group")
		if g := l.byName[fmt.Sprint(name)]; g != nil && len(g.deployments) > 0 {
			cache["embedder"] = map[string]any{"provider": "@" + g.deployments[0].slug, "model": g.deployments[0].model}
		} else {
			cache = map[string]any{"mode": "simple"}
			if age := s.cache["max_age"]; age != nil {
				cache["max_age"] = age
			}
			params := l.root.Get("litellm_settings").Get("cache_params")
			for _, n := range []string{"similarity_threshold", "redis_semantic_cache_embedding_model", "qdrant_semantic_cache_embedding_model"} {
				l.changed(params.Get(n), "the cache compares exactly: model_list has no such embedding model")
			}
		}
	}
	config["cache"] = cache
}

func (s *settings) retry(attempts int) map[string]any {
	r := map[string]any{"attempts": attempts, "use_retry_after_headers": true}
	if s.retryCodes != nil {
		r["on_status_codes"] = s.retryCodes
	}
	return r
}

// groupNode is the target of a group with its fallbacks. short leaves these out.
func groupNode(l *importer, g *group, short bool) map[string]any {
	node := balancedTargets(l, g)
	if short && g.known != "" {
		return node
	}
	chain := func(names []*document.Node, on []any) {
		targets := []any{node}
		seen := []*group{g}
		for _, n := range names {
			to := l.byName[n.Scalar()]
			if n.Kind() != document.Text {
				l.not(n, "a fallback is the name of a model")
				continue
			}
			if to == nil {
				l.not(n, "model_list has no such model")
				continue
			}
			if !slices.Contains(seen, to) && len(targets) < maxNested {
				seen = append(seen, to)
				targets = append(targets, balancedTargets(l, to))
			}
		}
		if len(targets) > 1 {
			node = map[string]any{"strategy": map[string]any{"mode": "fallback", "on_status_codes": on}, "targets": targets}
		}
	}
	s := &l.shared
	own := s.fallbacks[g.name]
	if own == nil {
		own = s.fallbacks["*"]
	}
	if own == nil {
		own = s.always
	}
	chain(own, failed)
	chain(s.special[g.name], rejected)
	return node
}

// balancedTargets is the target of a group's own deployments: tiers by order, in them by weight or
// by the strategy that measures.
func balancedTargets(l *importer, g *group) map[string]any {
	if l.shared.tagFiltering && slices.ContainsFunc(g.deployments, func(d *deployment) bool { return len(d.tags) > 0 }) {
		return tagTargets(l, g)
	}
	return tierTargets(l, g.deployments)
}

func tierTargets(l *importer, all []*deployment) map[string]any {
	byOrder := map[int][]*deployment{}
	for _, d := range all {
		byOrder[d.order] = append(byOrder[d.order], d)
	}
	var tiers []any
	for _, order := range slices.Sorted(maps.Keys(byOrder)) {
		tiers = append(tiers, shuffledTargets(l, byOrder[order]))
	}
	if len(tiers) == 1 {
		return tiers[0].(map[string]any)
	}
	return map[string]any{"strategy": map[string]any{"mode": "fallback", "on_status_codes": failed}, "targets": tiers[:min(len(tiers), maxNested)]}
}

func shuffledTargets(l *importer, all []*deployment) map[string]any {
	if len(all) == 1 {
		return leafTarget(l, all[0])
	}
	weighted := slices.ContainsFunc(all, func(d *deployment) bool { return d.weight > 0 })
	rated := !slices.ContainsFunc(all, func(d *deployment) bool { return d.rpm == 0 })
	var targets []any
	for i, d := range all {
		if i == maxNested {
			l.remind("one model has more than %d deployments; only the first %d are in the config", maxNested, maxNested)
			break
		}
		node := leafTarget(l, d)
		switch {
		case l.shared.measure != "": // a measured strategy has no use for weights
		case weighted:
			node["weight"] = d.weight
		case rated:
			node["weight"] = d.rpm
		}
		targets = append(targets, node)
	}
	mode := "loadbalance"
	if l.shared.measure != "" {
		mode = l.shared.measure
	}
	return map[string]any{"strategy": map[string]any{"mode": mode}, "targets": targets}
}

// tagTargets chooses deployments by the metadata field tag.
func tagTargets(l *importer, g *group) map[string]any {
	var tags []string
	var rest []*deployment
	for _, d := range g.deployments {
		if len(d.tags) == 0 || slices.Contains(d.tags, "default") {
			rest = append(rest, d)
		}
		for _, t := range d.tags {
			if !slices.Contains(tags, t) {
				tags = append(tags, t)
			}
		}
	}
	if len(rest) == 0 {
		rest = g.deployments
	}
	var conditions, targets []any
	for _, t := range tags[:min(len(tags), maxNested-1)] {
		var with []*deployment
		for _, d := range g.deployments {
			if slices.Contains(d.tags, t) {
				with = append(with, d)
			}
		}
		node := tierTargets(l, with)
		node["name"] = "tag " + t
		targets = append(targets, node)
		conditions = append(conditions, map[string]any{"query": map[string]any{"metadata.tag": map[string]any{"$eq": t}}, "then": "tag " + t})
	}
	node := tierTargets(l, rest)
	node["name"] = "no tag"
	return map[string]any{"strategy": map[string]any{"mode": "conditional", "conditions": conditions, "default": "no tag"}, "targets": append(targets, node)}
}

// leafTarget is the target of one deployment.
func leafTarget(l *importer, d *deployment) map[string]any {
	t := map[string]any{"provider": "@" + d.slug}
	if !d.anyModel {
		t["override_params"] = map[string]any{"model": d.model}
	}
	if len(d.defaults) > 0 {
		t["default_params"] = maps.Clone(d.defaults)
	}
	if len(d.drop) > 0 {
		t["drop_params"] = d.drop
	}
	if d.marked != nil {
		t["prompt_cache"] = maps.Clone(d.marked)
	}
	if d.timeout > 0 {
		t["request_timeout"] = d.timeout
	}
	if d.first > 0 {
		t["first_token_timeout"] = d.first
	}
	if d.hasRetry {
		t["retry"] = l.shared.retry(d.retries)
	}
	return t
}

func count(node map[string]any) int {
	n := 1
	list, _ := node["targets"].([]any)
	for _, t := range list {
		n += count(t.(map[string]any))
	}
	return n
}
