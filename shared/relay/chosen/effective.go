package chosen

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/reference"
	"gateway/shared/relay/inbound"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/units"
)

// effective makes the body that the target's config makes of the client's, and
// goes by it from here on: whether the answer is a stream, whether usage is told
// in it, and what it may cost.
func (ch *Chooser) effective() error {
	ch.Target.Demands = ch.Target.Body.Own
	body, other := ch.Target.Body.In, ch.Target.To.Prompt != ch.Target.Body.Filled
	if other {
		body = ch.Target.To.Prompt.Body
	}
	if len(body) == 0 || ch.Target.To.Leaf.Plain() && !other {
		if err := ch.byWay(body); err != nil {
			return err
		}
		return ch.withinBounds(ch.Target.Body.Excess())
	}
	var err error
	if !ch.Target.To.Leaf.Plain() {
		if body, err = ch.Target.To.Leaf.Apply(nil, body); err != nil {
			return err
		}
	}
	return ch.Rewrite(body)
}

// Rewrite takes a body in place of the client's: what a config or a guardrail has made
// of it.
func (ch *Chooser) Rewrite(body []byte) error {
	ch.Target.To.Body = body
	if err := ch.mayName(body); err != nil {
		return err
	}
	if ch.Target.Req.Route.Shape == routes.Raw && ch.Target.Body.Like() == nil && ch.Target.Req.Req.Method == http.MethodPost {
		inbound.SetUnits(&ch.Target.Demands, units.Demand(ch.Target.Body.RawPath(), body, int64(len(body))))
	}
	if ch.Target.Req.Route.Shape != routes.Unified {
		return nil
	}
	if err := ch.byWay(body); err != nil {
		return err
	}
	if ch.Target.Req.Route.Client != nil {
		// What a config makes of a body keeps to the same bounds.
		checked := chat.Checked{ByTarget: true}
		if err := ch.Target.Req.Route.Client.Check(body, &checked); err != nil {
			return err
		}
		if err := ch.withinBounds(checked.Excess); err != nil {
			return err
		}
	}
	var err error
	ch.Target.Demands, err = ch.Target.Body.DemandsOf(body, &ch.Target.Edited)
	return err
}

// mayName checks what a body names that is not the client's own: a config's parameters may
// name models and stored things as the client's body may.
func (ch *Chooser) mayName(body []byte) error {
	if ch.Target.To.Target.Provider != nil {
		if err := ch.mayCallAll(ch.Target.To.Target.Provider, body); err != nil {
			return err
		}
	}
	if ch.Target.To.Saved == nil || !ch.Target.To.Wall.On {
		return nil
	}
	if err := mayUseItems(ch.Wall, body); err != nil || !reference.MayNameObjects(body) {
		return err
	}
	ids, err := kept.IDsIn(body)
	if err != nil {
		return err
	}
	if ch.Target.Req.Route.Client != nil && !ch.Target.SameDialect() {
		ids = kept.Files(ids)
	}
	return ch.Wall.check(ids)
}

// byWay settles by which of the target's operations a body goes that may go by several.
func (ch *Chooser) byWay(body []byte) error {
	ch.byResponses(body)
	return ch.byNative(body)
}
