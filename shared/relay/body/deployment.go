package body

import (
	"gateway/shared/wire"
	"gateway/shared/wire/azure"
)

// Clients of Azure name a deployment in the address and leave the model out of the body, or
// empty. The deployment is then the model, at whatever provider.

// deployment is the one that the address names; "" for none.
func deployment(b *Body) string {
	if b.Req.Req == nil || b.Req.Req.URL == nil || b.Req.Req.URL.RawQuery == "" || b.Req.Route.NoModel || b.Req.Route.InPath {
		return ""
	}
	return azure.Deployment(b.Req.Req.URL.RawQuery)
}

// nameDeployment writes the deployment as the model into a body that names none.
func nameDeployment(b *Body) {
	name := deployment(b)
	if name == "" {
		return
	}
	var w wire.Walk
	if bodyKeys.Walk(b.In, &w) != nil {
		return // the check tells why
	}
	if v := w.Spans[keyModel]; !v.Present(b.In) || string(v.Of(b.In)) == `""` {
		b.In = wire.Splice(nil, b.In, SetModel(&w, wire.AppendJSONString(nil, name)))
	}
}

// formDeployment takes the deployment for the model of a form that names none.
func formDeployment(b *Body) (taken bool, err error) {
	name := deployment(b)
	if name == "" {
		return false, nil
	}
	b.Form.Nameless, b.Unread = true, !b.Form.Whole()
	return true, splitModel(b, name, true)
}
