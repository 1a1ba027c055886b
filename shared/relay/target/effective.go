package target

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/reference"
	"gateway/shared/relay/body"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/units"
)

// effective makes the body that the target's config makes of the client's, and
// goes by it from here on: whether the answer is a stream, whether usage is told
// in it, and what it may cost.
func effective(tg *Target) error {
	tg.Demands = tg.Body.Own
	if tg.To.order != nil {
		body.SetUnits(&tg.Demands, *tg.To.order)
	}
	body, other := tg.Body.In, tg.To.Prompt != tg.Body.Filled
	if other {
		body = tg.To.Prompt.Body
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

// Rewrite takes src in place of the client's: what a config or a guardrail has made
// of it.
func Rewrite(tg *Target, src []byte) error {
	tg.To.Body = src
	if err := mayName(tg, src); err != nil {
		return err
	}
	if tg.Req.Route.Shape == routes.Raw && tg.Body.Like() == nil && tg.Req.Req.Method == http.MethodPost {
		body.SetUnits(&tg.Demands, units.Demand(tg.Body.RawPath(), src, int64(len(src))))
	}
	if tg.Req.Route.Shape != routes.Unified {
		return nil
	}
	if err := byWay(tg, src); err != nil {
		return err
	}
	if tg.Req.Route.Client != nil {
		// What a config makes of a src keeps to the same bounds.
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

// mayName checks what a body names that is not the client's own: a config's parameters may
// name models and stored things as the client's body may.
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
	ids, err := kept.IDsIn(body)
	if err != nil {
		return err
	}
	if tg.Req.Route.Client != nil && !tg.SameDialect() {
		ids = kept.Files(ids)
	}
	return check(tg, ids)
}

// byWay settles by which of the target's operations a body goes that may go by several.
func byWay(tg *Target, body []byte) error {
	byResponses(tg, body)
	return byNative(tg, body)
}
