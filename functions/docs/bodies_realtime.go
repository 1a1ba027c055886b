package docs

import "gateway/shared/admin"

// sessionOfSecret are settings of a session; the provider decides what they may be.
func sessionOfSecret(more map[string]admin.Schema) map[string]admin.Schema {
	all := map[string]admin.Schema{
		"model":        {"type": "string", "description": "A model, or @slug/model to name the saved provider too. If it is absent, the config must set it.", "example": "gpt-realtime"},
		"instructions": {"type": "string", "example": "Answer in one sentence."},
	}
	for name, s := range more {
		all[name] = s
	}
	return all
}

var (
	transcriptionOfSecret = object(nil, map[string]admin.Schema{"model": {"type": "string", "example": "whisper-1"}})
	secretOfSession       = object([]string{"value", "expires_at"}, map[string]admin.Schema{"value": {"type": "string", "description": "The secret; it is shown once."}, "expires_at": integer})
)

const geminiLive = "Open a Live session of Gemini over a WebSocket. Its first message, setup, names the model."

var realtimeBodies = map[string]body{
	"realtimeSecret": {
		doc: "Create a short-lived secret for realtime sessions of one model, with the key, headers, config and settings of this request.",
		request: request(nil, map[string]admin.Schema{
			"expires_after": object(nil, map[string]admin.Schema{"anchor": constant("created_at"), "seconds": within("integer", 10, 7200)}),
			"session": object(nil, sessionOfSecret(map[string]admin.Schema{
				"type": {"type": "string", "enum": []any{"realtime", "transcription"}}, "audio": object(nil, map[string]admin.Schema{"input": object(nil, map[string]admin.Schema{"transcription": transcriptionOfSecret})}),
			})),
		}),
		answer: object([]string{"value", "expires_at", "session"}, map[string]admin.Schema{"value": {"type": "string", "description": "The secret; it is shown once."}, "expires_at": integer, "session": open}),
	},
	"liveSession":               {doc: "Open a Live session of OpenAI over a WebSocket. Its first message, session.start, names the model.", request: open, answer: open},
	"geminiLiveSession_v1alpha": {doc: geminiLive, request: open, answer: open},
	"geminiLiveSession_v1beta":  {doc: geminiLive, request: open, answer: open},
	"geminiLiveSession_v1":      {doc: geminiLive, request: open, answer: open},
	"responsesSocket":           {doc: "Create responses over a WebSocket: each response.create is processed like POST /responses, and the events of its stream are sent as messages.", request: open, answer: open},
	"realtimeSession": {
		doc:     "Create a client secret in the format of the beta, valid for a minute.",
		request: request(nil, sessionOfSecret(map[string]admin.Schema{"input_audio_transcription": transcriptionOfSecret})),
		answer:  object([]string{"id", "client_secret"}, map[string]admin.Schema{"id": text, "object": text, "model": text, "client_secret": secretOfSession}),
	},
	"realtimeTranscriptionSession": {
		doc:     "Create a client secret for a transcription session, in the format of the beta.",
		request: object([]string{"input_audio_transcription"}, map[string]admin.Schema{"input_audio_transcription": transcriptionOfSecret}),
		answer:  object([]string{"id", "client_secret"}, map[string]admin.Schema{"id": text, "object": text, "client_secret": secretOfSession}),
	},
}
