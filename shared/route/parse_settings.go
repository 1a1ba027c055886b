package route

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"gateway/shared/wire"
)

func parseDropParams(r *reader, v value) []string {
	paths := r.texts(v)
	for i, p := range paths {
		if _, ok := parseDropPath(p); !ok {
			r.add(v.path+"["+strconv.Itoa(i)+"]", "must be a path such as metadata.internal, messages[0].name or messages[*].content[*].cache_control")
		}
	}
	return paths
}

// parsePromptCache reads {"mode": "auto" or "off", "ttl": "5m" or "1h"}.
func parsePromptCache(r *reader, v value) *PromptCache {
	out := new(PromptCache)
	r.members(v, func(key string, v value) {
		switch key {
		case "mode":
			switch mode := r.text(v); mode {
			case "off":
				out.Off = true
			case "auto", "":
			default:
				r.add(v.path, "must be auto or off")
			}
		case "ttl":
			switch ttl := r.text(v); ttl {
			case "1h":
				out.Hour = true
			case "5m", "":
			default:
				r.add(v.path, "must be 5m or 1h")
			}
		default:
			r.unknown(v, "prompt_cache")
		}
	})
	return out
}

func parseCache(r *reader, v value) *Cache {
	out := &Cache{}
	mode := value{}
	if v.kind() == wire.KindString {
		mode = v
	} else {
		r.members(v, func(key string, v value) {
			switch key {
			case "mode":
				mode = v
			case "max_age":
				age := time.Duration(r.whole(v, 0)) * time.Second
				out.MaxAge = min(max(age, MinCacheAge), MaxCacheAge)
			case "embedder":
				out.Embedder = parseEmbedder(r, v)
			case "threshold":
				out.Threshold = r.number(v, MinCacheThreshold, 1)
			default:
				r.unknown(v, "cache")
			}
		})
		if mode.raw == nil {
			if v.kind() == wire.KindObject {
				r.add(v.path+".mode", "is required: simple or semantic")
			}
			return out
		}
	}
	out.Mode = r.text(mode)
	if mode.kind() == wire.KindString && out.Mode != "simple" && out.Mode != "semantic" {
		r.add(mode.path, "must be simple or semantic")
	}
	// Configs that were saved before an embedder was required still compare exactly.
	if r.strict && out.Mode == "semantic" && out.Embedder == nil {
		r.add(v.path+".embedder", `is required with the mode semantic: {"provider":"@slug","model":"..."}, the model for comparing texts`)
	}
	return out
}

// parseEmbedder reads the model that a semantic cache compares texts by.
func parseEmbedder(r *reader, v value) *CacheEmbedder {
	out := &CacheEmbedder{}
	var named, modelled bool
	r.members(v, func(key string, v value) {
		switch key {
		case "provider":
			named = true
			s := r.name(v)
			if out.Slug = strings.TrimPrefix(s, "@"); s != "" && (out.Slug == "" || out.Slug == s) {
				r.add(v.path, "must be @ and the slug of a saved provider")
			}
		case "model":
			modelled = true
			out.Model = r.name(v)
		default:
			r.unknown(v, "embedder")
		}
	})
	if v.kind() == wire.KindObject {
		if !named {
			r.add(v.path+".provider", "is required: @ and the slug of a saved provider")
		}
		if !modelled {
			r.add(v.path+".model", "is required: an embedding model")
		}
	}
	return out
}

// parseHooks joins the entries of one side. The result is nil if none of the fields is
// present, and empty if the config has empty lists.
func parseHooks(r *reader, hooks, guardrails, mutators value) []Guardrail {
	var all []Guardrail
	for _, list := range []struct {
		v    value
		form GuardrailForm
	}{{hooks, FormHook}, {guardrails, FormGuardrail}, {mutators, FormMutator}} {
		if list.v.raw == nil {
			continue
		}
		if all == nil {
			all = []Guardrail{}
		}
		r.elements(list.v, func(_ int, v value) {
			switch v.kind() {
			case wire.KindString:
				if slug := r.name(v); slug != "" {
					all = append(all, Guardrail{Field: v.path, Slug: slug, Form: list.form})
				}
			case wire.KindObject:
				all = append(all, parseGuardrail(r, v, list.form))
			default:
				r.add(v.path, "must be the slug of a guardrail or an object")
			}
		})
	}
	return all
}

// parseGuardrail reads an entry that is an object. If it only has an id, it is a reference
// to a saved guardrail.
func parseGuardrail(r *reader, v value, form GuardrailForm) Guardrail {
	id, fields := "", 0
	r.members(v, func(key string, v value) {
		fields++
		if key == "id" {
			id = r.name(v)
		}
	})
	if form == FormHook && id == "" {
		r.add(v.path+".id", "is required")
	}
	if fields == 1 && id != "" {
		return Guardrail{Field: v.path, Slug: id, Form: form}
	}
	return Guardrail{Field: v.path, Raw: slices.Clone(v.raw), Form: form}
}
