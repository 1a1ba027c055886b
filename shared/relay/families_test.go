package relay_test

import (
	"strconv"
	"unicode/utf8"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/responses"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay"
)

const write = "completions.write"

// conversation is a route of a conversation.
func conversation(path, endpoint string, client chat.TwoWayDialect, op provider.Operation, streams bool) relay.Route {
	return relay.Route{Method: "POST", Path: path, Endpoint: endpoint, BodyMode: relay.Unified, Scope: write, Client: client, Operation: op, Streams: streams}
}

// operation is a route of an operation that is no conversation.
func operation(path, endpoint string, op provider.Operation, check func([]byte) error, meter func([]byte) chat.Meter) relay.Route {
	return relay.Route{Method: "POST", Path: path, Endpoint: endpoint, BodyMode: relay.Unified, Scope: write, Operation: op, Check: check, Meter: meter, NoOutput: true, CustomHost: true}
}

// stored is a route to an object that a provider stores.
func stored(method, path, endpoint string, op provider.Operation) relay.Route {
	return relay.Route{
		Method: method, Path: path, Endpoint: endpoint, BodyMode: relay.Resource, Scope: write,
		Operation: op, NoModel: true, Free: true, NoOutput: true, BuiltIn: true,
	}
}

// uploaded is a route of an operation with a form.
func uploaded(path, endpoint string, op provider.Operation, check func(relay.Form) error) relay.Route {
	return relay.Route{Method: "POST", Path: path, Endpoint: endpoint, BodyMode: relay.Multipart, Scope: write, Operation: op, CheckForm: check}
}

// familyRoutes are the routes of the data plane, as far as tests of the pipeline need them. Their
// families in functions/ declare them in full.
var familyRoutes = append([]relay.Route{
	conversation("/completions", "complete", openai.Completions{}, provider.Completions, false),
	conversation("/responses", "createModelResponse", responses.Responses{}, provider.ResponsesCreate, false),
	earlier("GET", "/responses/{id}", "getModelResponse", provider.ResponsesGet),
	earlier("POST", "/responses/{id}/cancel", "proxy", provider.ResponsesCancel),
	operation("/responses/input_tokens", "proxy", provider.ResponsesCount, nil, nil),
	operation("/embeddings", "embed", provider.Embeddings, openai.CheckEmbeddings, openai.MeterEmbeddings),
	operation("/rerank", "rerank", provider.Rerank, openai.CheckRerank, openai.MeterRerank),
	operation("/ocr", "ocr", provider.OCR, openai.CheckOCR, openai.MeterOCR),
	operation("/moderations", "moderate", provider.Moderations, openai.CheckModeration, openai.MeterModeration),
	counting("/messages/count_tokens", anthropic.Messages{}, provider.MessagesCountTokens, anthropic.CheckCount),
	images(operation("/images/generations", "imageGenerate", provider.ImagesGenerate, openai.CheckImage, openai.MeterImages)),
	speech(operation("/audio/speech", "createSpeech", provider.AudioSpeech, openai.CheckSpeech, openai.MeterSpeech)),
	transcription(uploaded("/audio/transcriptions", "createTranscription", provider.AudioTranscription, func(f relay.Form) error { return openai.CheckTranscription(f) })),
	upload(uploaded("/files", "uploadFile", provider.FilesUpload, func(f relay.Form) error { return openai.CheckUpload(f) })),
	stored("GET", "/files", "listFiles", provider.FilesList),
	stored("GET", "/files/{id}", "retrieveFile", provider.FilesGet),
	stored("DELETE", "/files/{id}", "deleteFile", provider.FilesDelete),
	{Methods: []string{"POST", "GET", "PUT", "DELETE"}, Path: relay.AnyPath, Endpoint: "proxy", BodyMode: relay.Raw, Scope: write, Native: []relay.Route{
		conversation("/v1beta/models/{model+}:generateContent", "chatComplete", gemini.Generate{}, provider.Chat, false),
		conversation("/v1beta/models/{model+}:streamGenerateContent", "chatComplete", gemini.Generate{}, provider.Chat, true),
		conversation("/v2/chat", "chatComplete", cohere.Chat{}, provider.Chat, false),
		conversation("/model/{model+}/converse", "chatComplete", converse.Converse{}, provider.Chat, false),
		conversation("/model/{model+}/converse-stream", "chatComplete", converse.Converse{}, provider.Chat, true),
	}},
}, routes...)

// earlier is a route to a stored response.
func earlier(method, path, endpoint string, op provider.Operation) relay.Route {
	rt := stored(method, path, endpoint, op)
	rt.Media, rt.BuiltIn = true, false
	rt.EarlierResponse = &relay.EarlierResponse{Endpoint: "createModelResponse", Client: responses.Responses{}}
	return rt
}

// counting is a route that counts tokens, for targets that do, and estimates seven for others.
func counting(path string, errors chat.TwoWayDialect, op provider.Operation, check func([]byte) error) relay.Route {
	rt := operation(path, "messagesCountTokens", op, check, func([]byte) chat.Meter {
		m := chat.Meter{Complete: true, Started: true}
		m.Usage.Set(pricing.Input, 0)
		return m
	})
	rt.Errors, rt.Free, rt.CustomHost = errors, true, false
	rt.Local = func([]byte) ([]byte, error) { return []byte(`{"input_tokens":7,"estimated":true}`), nil }
	return rt
}

func images(rt relay.Route) relay.Route {
	rt.Media, rt.DefaultModel = true, "dall-e-2"
	rt.UnitsOf = func(get relay.Get, _ int64) (d relay.Units) {
		n, _ := strconv.ParseInt(get("n"), 10, 32)
		d.Quality, d.Size = get("quality"), get("size")
		if d.Size == "" {
			d.Size = "1024x1024"
		}
		d.Most.Set(pricing.Images, max(n, 1))
		d.Assumed.Set(pricing.Images, max(n, 1))
		d.Assumed.Estimated = true
		return d
	}
	return rt
}

func speech(rt relay.Route) relay.Route {
	rt.Media = true
	rt.UnitsOf = func(get relay.Get, _ int64) (d relay.Units) {
		n := int64(utf8.RuneCountInString(get("input")))
		d.Most.Set(pricing.Characters, n)
		d.Assumed.Set(pricing.Characters, n)
		return d
	}
	return rt
}

func transcription(rt relay.Route) relay.Route {
	rt.Meter, rt.Media = openai.MeterTranscription, true
	rt.UnitsOf = func(_ relay.Get, bytes int64) (d relay.Units) {
		d.Most.Set(pricing.Seconds, bytes/750+1)
		d.Assumed.Set(pricing.Seconds, bytes/16_000+1)
		d.Assumed.Estimated = true
		return d
	}
	return rt
}

func upload(rt relay.Route) relay.Route {
	rt.NoModel, rt.Free, rt.NoOutput, rt.BuiltIn = true, true, true, true
	return rt
}
