package inbound

import (
	"gateway/shared/wire"
	"gateway/shared/wire/azure"
)

// Clients of Azure name a deployment in the address and leave the model out of the body, or
// empty. The deployment is then the model, at whatever provider.

// deployment is the one that the address names; "" for none.
func (b reader) deployment() string {
	if b.body.Req.Req == nil || b.body.Req.Req.URL == nil || b.body.Req.Req.URL.RawQuery == "" || b.body.Req.Route.NoModel || b.body.Req.Route.InPath {
		return ""
	}
	return azure.Deployment(b.body.Req.Req.URL.RawQuery)
}

// nameDeployment writes the deployment as the model into a body that names none.
func (b reader) nameDeployment() {
	name := b.deployment()
	if name == "" {
		return
	}
	var w wire.Walk
	if bodyKeys.Walk(b.body.In, &w) != nil {
		return // the check tells why
	}
	if v := w.Spans[keyModel]; !v.Present(b.body.In) || string(v.Of(b.body.In)) == `""` {
		b.body.In = wire.Splice(nil, b.body.In, SetModel(&w, wire.AppendJSONString(nil, name)))
	}
}

// formDeployment takes the deployment for the model of a form that names none.
func (b reader) formDeployment() (taken bool, err error) {
	name := b.deployment()
	if name == "" {
		return false, nil
	}
	b.body.Form.Nameless, b.body.Unread = true, !b.body.Form.Whole()
	return true, b.splitModel(name, true)
}
