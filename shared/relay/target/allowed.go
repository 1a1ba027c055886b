package target

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/dialect/reference"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/form"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/routes"
)

// named sets the model from the path of a passed-through request, regardless of its body.
func named(tg *Target, p *provider.Provider) error {
	if tg.Req.Route.BodyMode != routes.Raw {
		return nil
	}
	if model := p.PathModel(tg.Body.RawPath()); model != "" {
		tg.Choice.Model = model
	}
	return readVideo(tg)
}

// readVideo reads the model, the length and the size of a video that is ordered by a form.
func readVideo(tg *Target) error {
	if at := tg.Body.StoredPath(); at.Collection != "videos" || at.ID != "" || tg.Req.Req.Method != http.MethodPost || !tg.Body.Multipart() {
		return nil
	}
	f, err := passedForm(tg)
	if err != nil || f == nil {
		return err
	}
	if model, _ := f.Get("model"); model != "" && tg.Choice.Model == "" {
		tg.Choice.Model = model
	}
	order := body.DemandOfForm(tg.Body.RawPath(), f.Get, tg.Req.Req.ContentLength)
	if !f.Complete() {
		order.Size = "" // it may follow the files
	}
	tg.Choice.order = &order
	return nil
}

// hidden reports whether the request may name a model that cannot be read here: after the files
// of a form, or in the rows of a batch.
func hidden(tg *Target) bool {
	return tg.Req.Route.AnyModel || (tg.Choice.Model == "" || tg.Body.Form != nil && tg.Body.Form.Nameless) && (tg.Body.UnknownModel || prompted(tg))
}

// listed reports whether the settings list the models that may be called. Then a request with
// models that cannot be read is rejected.
func listed(tg *Target) bool { return len(tg.Req.Org.Settings.AllowedModels) > 0 }

// limited reports whether the settings, or the integration of the target, allow some models only.
func limited(tg *Target) bool { return listed(tg) || tg.Choice.limited != nil }

// mayCall checks the models that the request names against those that the settings and the
// integration of the target allow.
func mayCall(tg *Target, p *provider.Provider) error {
	if !limited(tg) {
		return nil
	}
	if listed(tg) && hidden(tg) && !(tg.Req.Route.BodyMode == routes.Raw && tg.Body.Multipart()) {
		return fault.New(fault.ModelNotAllowed, "model", "The settings allow only some models, and the model of this body cannot be read; send it as plain JSON, and not as rows of a batch")
	}
	if err := tg.MayCall(p, tg.Choice.Model); err != nil {
		return err
	}
	switch {
	case tg.Req.Route.BodyMode == routes.Raw:
		return mayCallPassed(tg, p)
	case tg.Body.Form != nil && !tg.Req.Route.NoModel:
		return mayCallInForm(tg, p, tg.Body.Form, true)
	case tg.Body.Form != nil || tg.Body.UnknownModel:
		return nil // an upload, or a body with its model in the path
	}
	return mayCallAll(tg, p, tg.Body.In)
}

// mayCallPassed checks the models that a passed-through request names: in its path, its query
// and its body. It rejects a body that cannot be read, and one without a model where the
// provider reads it there: a query parameter, or a nested field that the provider ignores, does
// not name the model of the request.
func mayCallPassed(tg *Target, p *provider.Provider) error {
	for _, model := range queryModels(tg.Req.Req.URL.Query()) {
		if err := tg.MayCall(p, model); err != nil {
			return err
		}
	}
	models := []string{tg.Choice.Model}
	if p.PathModel(tg.Body.RawPath()) == "" {
		models = append(models, pathModels(tg.Body.RawPath())...)
	}
	if leaf := tg.Choice.Leaf; leaf.Model == "" && len(tg.Body.In) > 0 { // not what a config has put in its place
		models = append(models, tg.Body.Model, leaf.DefaultModel)
	}
	named := false
	for _, model := range models {
		if err := tg.MayCall(p, model); err != nil {
			return err
		}
		named = named || model != ""
	}
	switch kind := strings.ToLower(admission.SingleHeader(tg.Req.Req.Header, "Content-Type")); {
	case tg.Body.Multipart():
		f, err := passedForm(tg)
		if err != nil {
			return err
		}
		if f != nil {
			if err := mayCallInForm(tg, p, f, false); err != nil {
				return err
			}
			named = named || len(modelsInForm(f)) > 0
		}
	case tg.Body.UnknownModel && listed(tg) && !isMedia(kind):
		return fault.New(fault.ModelNotAllowed, "content-type", "The settings allow some models only, and the models of this body cannot be read; send it as plain JSON")
	case len(tg.Body.In) > 0 && !tg.Body.UnknownModel:
		others, err := otherModels(tg.Body.In)
		if err != nil {
			return err
		}
		if err := mayCallEach(tg, p, others); err != nil {
			return err
		}
		named = named || slices.ContainsFunc(others, func(r reference.Reference) bool { return namesBelow(tg.Body.RawPath(), p.ID, r.Field) })
	}
	if !listed(tg) {
		return nil
	}
	if field := RowsFile(tg.Body.RawPath(), tg.Body.In); field != "" {
		return fault.Newf(fault.ModelNotAllowed, field, "The settings allow some models only, and the models of rows in a file cannot be read")
	}
	if !mayRunModel(tg.Req.Req.Method, tg.Body.RawPath(), tg.Body.StoredPath(), p) {
		return nil
	}
	if p.PathModel(tg.Body.RawPath()) == "" && !readsBodyModel(tg.Body.RawPath()) {
		return fault.New(fault.ModelNotAllowed, "path", "The settings allow some models only, and the place of the model in requests to this path is unknown; use the gateway's route for this operation")
	}
	if !named {
		return fault.New(fault.ModelNotAllowed, "model", "The settings allow some models only, and this request names none, so that the provider would choose one; name the model")
	}
	return nil
}

// namesBelow reports whether a provider reads the model of a passed-through request from a
// field other than the outermost model: of the rows of batches, evaluations and asynchronous
// calls, and OpenRouter's list.
func namesBelow(escapedPath, provider, field string) bool {
	if provider == "openrouter" && strings.HasPrefix(field, "models") {
		return true
	}
	path := strings.ToLower(escapedPath)
	return slices.ContainsFunc([]string{"batch", "evals", "async-invoke", "invocation-job"}, func(part string) bool { return strings.Contains(path, part) })
}

// isMedia reports whether a body of the media type is sound, a picture or a film: it names
// no model.
func isMedia(contentType string) bool {
	return slices.ContainsFunc([]string{"audio/", "image/", "video/"}, func(begin string) bool { return strings.HasPrefix(contentType, begin) })
}

// withoutModels are collections of providers that are added to without running a model.
var withoutModels = map[string]bool{
	"files": true, "uploads": true, "containers": true, "connectors": true, "libraries": true, "corpora": true, "ragcorpora": true,
	"filesearchstores": true, "datasets": true, "webhook_endpoints": true, "skills": true,
}

// mayRunModel reports whether a passed-through request without a model may run one that the
// provider chooses. A request about a stored object runs the model that the object was
// created with, if any.
func mayRunModel(method, escapedPath string, at *ownership.Path, p *provider.Provider) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
		return false
	}
	switch {
	case p.CountsTokens(escapedPath):
		return false
	case at.Ambiguous || at.Collection == "" || at.Collection == "models":
		return true
	}
	return at.ID == "" && !withoutModels[at.Collection] && !at.Free(method, escapedPath, p.Serves(provider.ResponsesCreate))
}

// mayCallInForm checks the models that the fields of a form name. Fields after the first file of
// a form that is not buffered completely end the request. replaced: the gateway writes the field
// model.
func mayCallInForm(tg *Target, p *provider.Provider, f *form.Form, replaced bool) error {
	named := modelsInForm(f)
	if replaced {
		named = slices.DeleteFunc(named, func(r reference.Reference) bool { return r.Field == "model" })
	}
	if err := mayCallEach(tg, p, named); err != nil {
		return err
	}
	if at := tg.Body.StoredPath(); listed(tg) && (!at.TakesUploads() || at.Ambiguous) {
		if field := modelFile(f); field != "" {
			return fault.Newf(fault.ModelNotAllowed, field, "The settings allow some models only, and %s is a file; send it as a field of text", field)
		}
		fieldsFirst(tg, f)
	}
	return nil
}

// modelFile returns the name of a part that is a file where the model is a field: "" if the form
// has none. Providers may read the file as the field.
func modelFile(f *form.Form) string {
	for _, a := range f.Attachments() {
		if found, _ := reference.FindInField(a.Name, []byte("x")); slices.ContainsFunc(found, func(r reference.Reference) bool { return r.Kind == reference.Model }) {
			return fault.Clip(a.Name, 100)
		}
	}
	return ""
}

// modelsInForm returns the models that the fields of a form name.
func modelsInForm(f *form.Form) (named []reference.Reference) {
	for name, value := range f.Fields() {
		found, _ := reference.FindInField(name, []byte(value)) // a value that is not JSON names none
		for _, r := range found {
			if r.Kind == reference.Model {
				if name != "model" {
					r.Field = name
				}
				r.ID = plainModel(r.ID)
				named = append(named, r)
			}
		}
	}
	return named
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

// pathModels returns the models of a path in the older format of OpenAI or in that of Azure,
// which OpenAI-compatible hosts accept as well.
func pathModels(escapedPath string) (models []string) {
	segments := routes.Segments(escapedPath)
	for i := 0; i+2 < len(segments); i++ {
		if strings.EqualFold(segments[i], "engines") || strings.EqualFold(segments[i], "deployments") {
			models = append(models, segments[i+1])
		}
	}
	return models
}

// mayCallAll checks every model that a body names against those that the settings allow:
// of fallbacks, of tools, of rows.
func mayCallAll(tg *Target, p *provider.Provider, body []byte) error {
	if !limited(tg) || len(body) == 0 {
		return nil
	}
	others, err := otherModels(body)
	if err != nil {
		return err
	}
	return mayCallEach(tg, p, others)
}

func mayCallEach(tg *Target, p *provider.Provider, named []reference.Reference) error {
	for _, r := range named {
		if err := tg.MayCall(p, r.ID); err != nil {
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
		return nil, fault.New(fault.ModelNotAllowed, "body", "Some models only are allowed, and the models of this body cannot be read; send it as plain JSON")
	}
	if namesPreset(body) {
		return nil, fault.New(fault.ModelNotAllowed, "preset", "Some models only are allowed, and the model of a preset that the provider stores cannot be read; name the model and its parameters in the request")
	}
	others := slices.DeleteFunc(found, func(r reference.Reference) bool { return r.Kind != reference.Model || r.Field == "model" })
	for i := range others {
		others[i].ID = plainModel(others[i].ID)
	}
	return others, nil
}

// namesPreset reports whether a body names a preset, which the provider stores with its models:
// OpenRouter reads it from a field of its own, or from the end of the model.
func namesPreset(body []byte) bool {
	var of struct{ Preset, Model any }
	_ = json.Unmarshal(body, &of) // as far as it can be read
	name, _ := of.Model.(string)
	return of.Preset != nil && of.Preset != "" || strings.Contains(name, "@preset/")
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

// maxListed is how many allowed models a rejection lists.
const maxListed = 20

// MayCall rejects a model that the settings or the integration of the target do not allow; "" is
// none.
func (tg *Target) MayCall(p *provider.Provider, model string) error {
	switch {
	case model == "":
		return nil
	case tg.Req.Org.Settings.AllowsModel(p.ID, model):
		if tg.Choice.limited != nil {
			return tg.Choice.limited.Allows(model)
		}
		return nil
	}
	allowed := tg.Req.Org.Settings.AllowedModels
	names := strings.Join(allowed[:min(maxListed, len(allowed))], ", ")
	if len(allowed) > maxListed {
		names += ", ..."
	}
	return fault.Newf(fault.ModelNotAllowed, "model", "The settings do not allow the model %q of %s; allowed are %s", fault.Clip(model, 300), p.ID, names)
}

// bodyModels are the ends of paths at which providers read the model from the body, in lower
// case.
var bodyModels = [][]string{
	{"chat", "completions"}, {"completions"}, {"fim", "completions"}, {"agents", "completions"}, {"chat"}, {"complete"}, {"generate"},
	{"responses"}, {"responses", "compact"}, {"responses", "input_tokens"}, {"conversations"}, {"interactions"}, {"decisions"},
	{"messages"}, {"messages", "count_tokens"}, {"messages", "batches"},
	{"embeddings"}, {"embed"}, {"multimodalembeddings"}, {"contextualizedembeddings"}, {"classify"}, {"tokenize"}, {"detokenize"},
	{"images", "generations"}, {"images", "edits"}, {"images", "variations"}, {"videos"},
	{"audio", "speech"}, {"audio", "transcriptions"}, {"audio", "translations"}, {"rerank"}, {"ocr"},
	{"moderations"}, {"chat", "moderations"}, {"classifications"}, {"chat", "classifications"},
	{"batches"}, {"batch", "jobs"}, {"embed-jobs"}, {"async-invoke"}, {"model-invocation-job"}, {"batchpredictionjobs"},
	{"fine_tuning", "jobs"}, {"tuningjobs"}, {"tunedmodels"}, {"cachedcontents"}, {"assistants"}, {"threads", "runs"}, {"evals"},
}

// Segments before these ends that name no model: alone, and with the next segment.
var (
	mounts     = []string{"api", "openai", "anthropic", "cohere", "inference", "compatibility", "compatible-mode", "serving-endpoints", "paas", "async", "beta", "ai"}
	mountPairs = []string{"projects", "locations", "accounts", "deployments", "engines"}
)

// readsBodyModel reports whether a provider is known to read the model of a request to the path
// from the outermost field of its body. Elsewhere the path may name another one, in a form that
// is not known, and the field may be a decoy.
func readsBodyModel(escapedPath string) bool {
	segments := routes.Segments(strings.ToLower(escapedPath))
	return slices.ContainsFunc(bodyModels, func(end []string) bool {
		n := len(segments) - len(end)
		return n >= 0 && slices.Equal(segments[n:], end) && isMount(segments[:n])
	})
}

func isMount(segments []string) bool {
	for len(segments) > 0 {
		switch first := segments[0]; {
		case isVersion(first), slices.Contains(mounts, first):
			segments = segments[1:]
		case len(segments) > 1 && (slices.Contains(mountPairs, first) || first == "endpoints" && segments[1] == "openapi"):
			segments = segments[2:]
		default:
			return false
		}
	}
	return true
}

// isVersion reports whether a segment is a version, such as v1 or v1beta.
func isVersion(s string) bool {
	rest, ok := strings.CutPrefix(s, "v")
	digits := strings.TrimLeft(rest, "0123456789")
	return ok && digits != rest && (digits == "" || strings.HasPrefix(digits, "alpha") || strings.HasPrefix(digits, "beta"))
}
