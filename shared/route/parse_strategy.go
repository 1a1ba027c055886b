package route

import (
	"strconv"
	"strings"
	"time"

	"gateway/shared/wire"
)

// parseStrategy reads a strategy. It stores a cb_config inside the strategy in breaker; it
// applies if the node has none.
func parseStrategy(r *reader, v value, breaker *value) *Strategy {
	s := &Strategy{Measure: MeasureRule{Floor: DefaultFloor, TieBreak: TieByWeight}}
	var mode, hedge value
	var measured []value // fields that only modes with figures have
	explored := false
	r.members(v, func(key string, v value) {
		switch key {
		case "mode":
			mode = v
			s.Mode = r.text(v)
		case "on_status_codes":
			s.OnStatusCodes = r.statuses(v)
		case "conditions":
			s.Conditions = parseConditions(r, v)
		case "default":
			s.Default = r.name(v)
		case "sticky":
			s.Sticky = parseSticky(r, v)
		case "hedge":
			s.Hedge = parseHedge(r, v)
			hedge = v
		case "explore":
			s.Measure.Explore, explored = r.number(v, 0, MaxExplore), true
			measured = append(measured, v)
		case "min_observations":
			s.Measure.Floor = int(r.whole(v, 1))
			if s.Measure.Floor > MaxFloor {
				s.Measure.Floor = MaxFloor
				if r.strict {
					r.add(v.path, "must be at most %d", MaxFloor)
				}
			}
			measured = append(measured, v)
		case "tie_break":
			if s.Measure.TieBreak = r.text(v); s.Measure.TieBreak != TieByWeight && s.Measure.TieBreak != TieByOrder && v.kind() == wire.KindString {
				r.add(v.path, "must be weight or order")
			}
			measured = append(measured, v)
		case "cb_config":
			if breaker.raw == nil {
				*breaker = v
			}
		default:
			r.unknown(v, "strategy")
		}
	})
	if v.kind() != wire.KindObject {
		return s
	}
	path := v.path
	switch s.Mode {
	case ModeSingle, ModeLoadbalance, ModeFallback, ModeCost, ModeLeastBusy:
	case ModeLatency:
		if !explored {
			s.Measure.Explore = DefaultExplore
		}
	case ModeConditional:
		if len(s.Conditions) == 0 {
			r.add(path+".conditions", "No conditions passed in the query router")
		}
		if s.Default == "" && r.strict {
			r.add(path+".default", "is required: the name of the target for requests that match no condition")
		}
	default:
		if mode.raw == nil || mode.kind() == wire.KindString {
			r.add(path+".mode", "must be one of single, loadbalance, fallback, conditional, latency, cost, least_busy")
		}
	}
	if s.Mode == ModeSingle && s.Hedge != nil && r.strict {
		r.add(hedge.path, "is only allowed for modes with several targets, not for single")
	}
	if !Compares(s.Mode) && r.strict {
		for _, m := range measured {
			r.add(m.path, "is only for the modes latency, cost and least_busy")
		}
	}
	return s
}

func parseConditions(r *reader, v value) []Condition {
	var list []Condition
	r.atMost(v, MaxConditions, func(_ int, v value) {
		var c Condition
		query := false
		r.members(v, func(key string, v value) {
			switch key {
			case "query":
				query = true
				c.Query = parseQuery(r, v)
			case "then":
				c.Then = r.name(v)
			default:
				r.unknown(v, "a condition")
			}
		})
		if v.kind() == wire.KindObject {
			if !query {
				r.add(v.path+".query", "is required")
			}
			if c.Then == "" {
				r.add(v.path+".then", "is required: the name of a target")
			}
		}
		list = append(list, c)
	})
	return list
}

func parseSticky(r *reader, v value) *StickyRule {
	out := &StickyRule{TTL: DefaultStickyTTL}
	enabled := false
	r.members(v, func(key string, v value) {
		switch key {
		case "enabled":
			enabled = r.flag(v)
		case "hash_fields":
			out.Fields = r.texts(v)
			for i, f := range out.Fields {
				of, key, _ := strings.Cut(f, ".")
				never := key == "" || of == "params" && strings.Contains(key, ".") // no request has such a field
				if of != "metadata" && of != "params" || never && r.strict {
					r.add(v.path+"["+strconv.Itoa(i)+"]", "must be metadata.<key> or params.<field>")
				}
			}
		case "ttl":
			out.TTL = time.Duration(r.whole(v, 1)) * time.Second
			if out.TTL > MaxStickyTTL {
				out.TTL = MaxStickyTTL
				if r.strict {
					r.add(v.path, "must be at most %d seconds", int64(MaxStickyTTL/time.Second))
				}
			}
		default:
			r.unknown(v, "sticky")
		}
	})
	if !enabled {
		return nil
	}
	if len(out.Fields) == 0 && r.strict {
		r.add(v.path+".hash_fields", "is required: the fields that keep requests together")
	}
	return out
}

// parseTargets reads the children of c.
func parseTargets(r *reader, c *Config, v value, level int) {
	most := MaxNestedTargets
	if level == 0 {
		most = MaxTargets
		if c.Strategy != nil && c.Strategy.Mode == ModeConditional {
			most = MaxConditionalTargets
		}
	}
	if level >= MaxNesting {
		r.add(v.path, "targets may nest at most %d deep", MaxNesting)
		return
	}
	count := 0
	r.atMost(v, 0, func(i int, v value) {
		count++
		r.nodes++
		if count > most || r.nodes > MaxNodes {
			return
		}
		if v.kind() != wire.KindObject {
			r.is(v, wire.KindObject)
			return
		}
		c.Targets = append(c.Targets, parseNode(r, v, c.Path+".targets["+strconv.Itoa(i)+"]", level+1))
	})
	switch {
	case count > most:
		r.add(v.path, "has %d targets; at most %d are allowed here", count, most)
	case r.nodes > MaxNodes:
		r.add(v.path, "the config has more than %d targets in all", MaxNodes)
	case count == 0 && v.kind() == wire.KindArray && c.Strategy != nil:
		r.add(v.path, "must have at least one target")
	}
}

// check checks that the fields of a node go together.
func check(r *reader, c *Config, v value, level int) {
	if v.kind() != wire.KindObject {
		return
	}
	if c.Strategy == nil && len(c.Targets) > 1 {
		r.add(join(v.path, "strategy"), "is required: it determines which of the %d targets is used", len(c.Targets))
	}
	if c.Strategy != nil && c.Strategy.Hedge != nil && len(c.Targets) == 1 && r.strict {
		r.add(join(v.path, "strategy.hedge"), "needs at least two targets")
	}
	if c.Strategy != nil && len(c.Targets) == 0 && len(r.details) == 0 {
		r.add(join(v.path, "targets"), "is required by strategy")
	}
	if r.strict {
		checkNames(r, c, v)
	}
	if r.strict && level == 0 && c.Passthrough && (c.Strategy != nil || len(c.Targets)+len(c.OverrideParams)+len(c.Input)+len(c.Output) > 0) {
		r.add(join(v.path, "passthrough"), "cannot be given together with strategy, targets, override_params or guardrails: the request names its provider")
	}
	modelParam(c.OverrideParams, c.Path, "override_params", &r.details)
	modelParam(c.DefaultParams, c.Path, "default_params", &r.details)
	if c.Provider == "vertex-ai" {
		has := func(name string) bool { return c.Fields[name] != nil }
		if !has("vertex_region") || !has("vertex_project_id") && !has("vertex_service_account_json") {
			r.add(join(v.path, "vertex_region"), "vertex-ai needs vertex_region, and vertex_project_id or vertex_service_account_json")
		}
	}
}

// checkNames requires that names are unique among siblings, and that conditions name
// targets.
func checkNames(r *reader, c *Config, v value) {
	names := map[string]int{}
	for i, t := range c.Targets {
		if t.Name == "" {
			continue
		}
		if first, twice := names[t.Name]; twice {
			r.add(join(v.path, "targets")+"["+strconv.Itoa(i)+"].name", "is already the name of target %d", first)
			continue
		}
		names[t.Name] = i
	}
	if c.Strategy == nil || c.Strategy.Mode != ModeConditional {
		return
	}
	unknown := func(path, name string) {
		if _, ok := names[name]; !ok && name != "" {
			r.add(path, "Invalid target name found in the query router: %s", name)
		}
	}
	strategy := join(v.path, "strategy")
	for i, cond := range c.Strategy.Conditions {
		unknown(strategy+".conditions["+strconv.Itoa(i)+"].then", cond.Then)
	}
	unknown(strategy+".default", c.Strategy.Default)
}
