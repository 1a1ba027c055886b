package chosen

import (
	"strings"

	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/routes"
)

// named takes the model from the path of a passed-through request, whatever its body says.
func (ch *Chooser) named(p *provider.Provider) {
	if ch.Route.Shape != routes.Raw {
		return
	}
	if model := p.PathModel(ch.RawPath()); model != "" {
		ch.To.Model = model
	}
}

// hidden tells whether the request may name a model that cannot be read here, for example
// behind the files of a form.
func (ch *Chooser) hidden() bool {
	return (ch.To.Model == "" || ch.Form != nil && ch.Form.Nameless) && (ch.Unread || ch.Route.AnyModel || ch.prompted())
}

// mayCall checks the target's model against the models that the settings allow.
func (ch *Chooser) mayCall(p *provider.Provider) error {
	if ch.hidden() && len(ch.Org.Settings.AllowedModels) > 0 {
		return fault.New(fault.ModelNotAllowed, "model", "The settings allow some models only, and the model of this body cannot be read; send it as plain JSON")
	}
	return ch.MayCall(p, ch.To.Model)
}

// maxTold is how many allowed models a refusal tells of.
const maxTold = 20

// MayCall refuses a model that the settings do not allow; "" is none.
func (tg *Target) MayCall(p *provider.Provider, model string) error {
	if model == "" || tg.Org.Settings.AllowsModel(p.ID, model) {
		return nil
	}
	allowed := tg.Org.Settings.AllowedModels
	told := strings.Join(allowed[:min(maxTold, len(allowed))], ", ")
	if len(allowed) > maxTold {
		told += ", ..."
	}
	return fault.Newf(fault.ModelNotAllowed, "model", "The settings do not allow the model %q of %s; allowed are %s", fault.Clip(model, 300), p.ID, told)
}
