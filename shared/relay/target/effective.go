package target

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/reference"
	"gateway/shared/relay/body"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/routes"
)

// effective applies the target's config to the client's body. The result determines whether the
// response is a stream, whether it reports usage, and what it may cost.
func effective(tg *Target) error {
	tg.Demands = tg.Body.Own
	if tg.To.order != nil {
		body.SetUnits(&tg.Demands, *tg.To.order)
	}
	body, other := tg.Body.In, tg.To.Prompt != tg.Body.Filled
	switch {
	case other:
		body = tg.To.Prompt.Body
	case tg.To.inlined != nil:
		body, other = tg.To.inlined, true
	}
	if len(body) == 0 || tg.To.Leaf.Plain() && !other {
		if err := byWay(tg, body); err != nil {
			return err
		}
		return withinBounds(tg, tg.Body.Excess())
	}
	var err error
	if !tg.To.Leaf.Plain() {
		if body, err = tg.To.Leaf.Apply(nil, body); err != nil {
			return err
		}
	}
	return Rewrite(tg, body)
}

// Rewrite replaces the client's body by src, the result of a config or a guardrail.
func Rewrite(tg *Target, src []byte) error {
	tg.To.Body = src
	if err := mayName(tg, src); err != nil {
		return err
	}
	if tg.Req.Route.Shape == routes.Raw && tg.Body.Like() == nil && tg.Req.Req.Method == http.MethodPost {
		body.SetUnits(&tg.Demands, body.Demand(tg.Body.RawPath(), src, int64(len(src))))
	}
	if tg.Req.Route.Shape != routes.Unified {
		return nil
	}
	if err := byWay(tg, src); err != nil {
		return err
	}
	if tg.Req.Route.Client != nil {
		// A body changed by a config must keep to the same limits.
		checked := chat.Checked{ByTarget: true}
		if err := tg.Req.Route.Client.Check(src, &checked); err != nil {
			return err
		}
		if err := withinBounds(tg, checked.Excess); err != nil {
			return err
		}
	}
	var err error
	tg.Demands, err = tg.Body.DemandsOf(src, &tg.Edited)
	return err
}

// mayName checks a body that the client did not write: a config's parameters may name the same
// models and stored objects as the client's body.
func mayName(tg *Target, body []byte) error {
	if tg.To.Target.Provider != nil {
		if err := mayCallAll(tg, tg.To.Target.Provider, body); err != nil {
			return err
		}
	}
	if tg.To.Saved == nil || !tg.To.Wall.On {
		return nil
	}
	if err := mayUseItems(tg, body); err != nil || !reference.MayNameObjects(body) {
		return err
	}
	ids, err := ownership.IDsIn(body)
	if err != nil {
		return err
	}
	if tg.Req.Route.Client != nil && !tg.SameDialect() {
		ids = ownership.Files(ids)
	}
	return check(tg, ids)
}

// byWay chooses the operation of the target for a body that has several.
func byWay(tg *Target, body []byte) error {
	byResponses(tg, body)
	return byNative(tg, body)
}
