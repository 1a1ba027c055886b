package chosen

import (
	"net/url"
	"slices"
	"strings"

	"gateway/shared/dialect/reference"
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

// hidden reports whether the request may name a model that cannot be read here: behind the
// files of a form, or in the rows of a batch.
func (ch *Chooser) hidden() bool {
	return ch.Route.AnyModel || (ch.To.Model == "" || ch.Form != nil && ch.Form.Nameless) && (ch.Unread || ch.prompted())
}

// mayCall checks the models that the request names against those that the settings allow.
func (ch *Chooser) mayCall(p *provider.Provider) error {
	if len(ch.Org.Settings.AllowedModels) == 0 {
		return nil
	}
	if ch.hidden() {
		return fault.New(fault.ModelNotAllowed, "model", "The settings allow some models only, and the model of this body cannot be read; send it as plain JSON, and not as rows of a batch")
	}
	if err := ch.MayCall(p, ch.To.Model); err != nil {
		return err
	}
	if ch.Route.Shape == routes.Raw {
		if err := mayCallPassed(ch, p); err != nil {
			return err
		}
	}
	if ch.Form != nil || ch.Unread {
		return nil // its model is that of a field, or of the address
	}
	return ch.mayCallAll(p, ch.In)
}

// mayCallPassed checks the models that a passed-through request names outside of its body, and
// refuses a batch whose rows are in a file.
func mayCallPassed(ch *Chooser, p *provider.Provider) error {
	models := queryModels(ch.Req.URL.Query())
	if p.PathModel(ch.RawPath()) == "" {
		models = append(models, pathModels(ch.RawPath())...)
	}
	for _, model := range models {
		if err := ch.MayCall(p, model); err != nil {
			return err
		}
	}
	if field := rowsInFile(ch.RawPath(), ch.In); field != "" {
		return fault.Newf(fault.ModelNotAllowed, field, "The settings allow some models only, and the models of rows in a file cannot be read")
	}
	return nil
}

// queryModels returns the models that a query names.
func queryModels(query url.Values) (models []string) {
	for name, values := range query {
		switch strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name)) {
		case "model", "modelid", "modelname":
			models = append(models, values...)
		}
	}
	return models
}

// pathModels returns the models of a path that has the older form of OpenAI or that of Azure,
// which hosts of OpenAI's shape accept as well.
func pathModels(escapedPath string) (models []string) {
	segments := routes.Segments(escapedPath)
	for i := 0; i+2 < len(segments); i++ {
		if strings.EqualFold(segments[i], "engines") || strings.EqualFold(segments[i], "deployments") {
			models = append(models, segments[i+1])
		}
	}
	return models
}

// rowsInFile returns the field by which a new batch names the file of its rows; "" if the
// request makes no such batch.
func rowsInFile(escapedPath string, body []byte) (field string) {
	segments := routes.Segments(escapedPath)
	if len(segments) == 0 || !strings.EqualFold(segments[len(segments)-1], "batches") {
		return ""
	}
	found, _ := reference.Find(body) // what cannot be read is refused by mayCallAll
	for _, r := range found {
		if r.Kind == reference.File || r.Kind == reference.Storage {
			return r.Field
		}
	}
	return ""
}

// mayCallAll checks every model that a body names against those that the settings allow:
// of fallbacks, of tools, of rows.
func (ch *Chooser) mayCallAll(p *provider.Provider, body []byte) error {
	if len(ch.Org.Settings.AllowedModels) == 0 || len(body) == 0 {
		return nil
	}
	others, err := otherModels(body)
	if err != nil {
		return err
	}
	for _, r := range others {
		if err := ch.MayCall(p, r.ID); err != nil {
			f := fault.From(err)
			return fault.New(f.Code, r.Field, f.Message)
		}
	}
	return nil
}

// otherModels returns the models that a body names besides the outermost one, which is the
// target's and may begin with a saved provider.
func otherModels(body []byte) ([]reference.Reference, error) {
	found, err := reference.Find(body)
	if err != nil || len(found) >= reference.Max {
		return nil, fault.New(fault.ModelNotAllowed, "body", "The settings allow some models only, and the models of this body cannot be read; send it as plain JSON")
	}
	others := slices.DeleteFunc(found, func(r reference.Reference) bool { return r.Kind != reference.Model || r.Field == "model" })
	for i := range others {
		others[i].ID = plainModel(others[i].ID)
	}
	return others, nil
}

// plainModel returns the name of a model without the collection that Google and Bedrock
// put before it.
func plainModel(name string) string {
	for _, before := range [...]string{"models/", "foundation-model/"} {
		if i := strings.LastIndex(name, before); i == 0 || i > 0 && name[i-1] == '/' || i > 0 && strings.HasPrefix(name, "arn:") {
			return name[i+len(before):]
		}
	}
	return name
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
