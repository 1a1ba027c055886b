package body

import (
	"gateway/shared/wire"
	"gateway/shared/wire/azure"
)

// Clients of Azure name a deployment in the URL and omit the model in the body, or leave it
// empty. The deployment is then the model, at any provider.

// deployment returns the deployment in the URL; "" if there is none.
func deployment(b *Body) string {
	if b.Req.Req == nil || b.Req.Req.URL == nil || b.Req.Req.URL.RawQuery == "" || b.Req.Route.NoModel || b.Req.Route.InPath {
		return ""
	}
	return azure.Deployment(b.Req.Req.URL.RawQuery)
}

// nameDeployment writes the deployment as the model into a body without one.
func nameDeployment(b *Body) {
	name := deployment(b)
	if name == "" {
		return
	}
	var w wire.Walk
	if bodyKeys.Walk(b.In, &w) != nil {
		return // the check reports the fault
	}
	if v := w.Spans[keyModel]; !v.Present(b.In) || string(v.Of(b.In)) == `""` {
		b.In = wire.Splice(nil, b.In, SetModel(&w, wire.AppendJSONString(nil, name)))
	}
}

// formDeployment uses the deployment as the model of a form without one.
func formDeployment(b *Body) (taken bool, err error) {
	name := deployment(b)
	if name == "" {
		return false, nil
	}
	b.Form.Nameless, b.Unread = true, !b.Form.Complete()
	return true, splitModel(b, name, true)
}
