// Package realtime is the family of what goes over WebSockets: realtime sessions, with
// the secrets that open them, the Live sessions of OpenAI and Gemini, and responses. It has no function: a session lasts longer than one may run.
package realtime

import (
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/live"
	"gateway/shared/dialect/live/bidi"
	"gateway/shared/dialect/live/sessions"
	"gateway/shared/dialect/responses"
	"gateway/shared/provider"
	"gateway/shared/relay"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/realtime"
	"gateway/shared/relay/routes"
)

// Routes are the family's routes.
func Routes() []relay.Route {
	all := []relay.Route{{
		Method: "GET", Path: "/realtime", Endpoint: "realtime", BodyMode: relay.Socket, Scope: "completions.write",
		Operation: provider.Realtime, Free: true, CustomHost: true, Handler: &relay.Realtime{Sockets: realtime.SocketMaker{}},
	}}
	for _, own := range [...]struct {
		path, name string
		shape      routes.SecretFormat
	}{
		{"/realtime/client_secrets", "realtimeSecret", routes.ClientSecret},
		{"/realtime/sessions", "realtimeSession", routes.SessionSecret},
		{"/realtime/transcription_sessions", "realtimeTranscriptionSession", routes.TranscriptionSecret},
	} {
		all = append(all, relay.Route{
			Method: "POST", Path: own.path, Name: own.name, Endpoint: "realtimeSecret", BodyMode: relay.Unified, Scope: "completions.write",
			Operation: provider.Realtime, Free: true, CustomHost: true, Handler: relay.Secret{Format: own.shape}, MaxBody: admission.MaxSecretRequest,
		})
	}
	all = append(all, relay.Route{
		Method: "GET", Path: "/live/sessions", Name: "liveSession", Endpoint: "realtime", BodyMode: relay.Socket, Scope: "completions.write",
		Operation: provider.Live, Free: true, CustomHost: true, Handler: &relay.Live{Sockets: realtime.SocketMaker{}, Wire: timed},
	})
	for _, version := range [...]string{"v1alpha", "v1beta", "v1"} {
		all = append(all, relay.Route{
			Method: "GET", Path: "/ws/google.ai.generativelanguage." + version + ".GenerativeService.BidiGenerateContent", Name: "geminiLiveSession_" + version, Endpoint: "realtime",
			BodyMode: relay.Socket, Scope: "completions.write", Operation: provider.GeminiLive, Free: true, Handler: &relay.Live{Sockets: realtime.SocketMaker{}, Wire: bidi.New}, Errors: gemini.Generate{},
		})
	}
	return append(all, relay.Route{
		Method: "GET", Path: "/responses", Endpoint: "responsesSocket", BodyMode: relay.Socket, Scope: "completions.write",
		Operation: provider.ResponsesCreate, Free: true, Handler: &relay.Dialogue{Sockets: realtime.SocketMaker{}, Path: "/responses"},
	})
}

// timed reads a Live session of OpenAI. Decisions are reported like responses.
func timed() live.Wire { return sessions.New(responses.Responses{}.MeterResponse) }
