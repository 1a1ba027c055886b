// Package audio is the family of speech, transcriptions and translations.
package audio

import (
	"strings"
	"unicode/utf8"

	"gateway/shared/dialect/openai"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay"
)

// maxForm bounds a form with sound, in bytes.
const maxForm = 256 << 20

// Routes are the family's routes.
func Routes() []relay.Route {
	return []relay.Route{
		{
			Method: "POST", Path: "/audio/speech", Endpoint: "createSpeech", BodyMode: relay.Unified, Scope: "completions.write",
			Operation: provider.AudioSpeech, Check: openai.CheckSpeech, Meter: openai.MeterSpeech, NoOutput: true, Media: true, UnitsOf: speechDemand,
		},
		{
			Method: "POST", Path: "/audio/transcriptions", Endpoint: "createTranscription", BodyMode: relay.Multipart, Scope: "completions.write",
			Operation: provider.AudioTranscription, CheckForm: checkTranscription, Meter: openai.MeterTranscription, Media: true, UnitsOf: transcriptionDemand, MaxBody: maxForm,
		},
		{
			Method: "POST", Path: "/audio/translations", Endpoint: "createTranslation", BodyMode: relay.Multipart, Scope: "completions.write",
			Operation: provider.AudioTranslation, CheckForm: checkTranslation, Meter: openai.MeterTranscription, Media: true, UnitsOf: transcriptionDemand, MaxBody: maxForm,
		},
	}
}

func checkTranscription(f relay.Form) error { return openai.CheckTranscription(f) }
func checkTranslation(f relay.Form) error   { return openai.CheckTranslation(f) }

// speechDemand estimates the cost of speech synthesis: by characters, or by tokens, which only
// streams report. A token is at least one character; speech takes about speechTokens tokens per
// character.
func speechDemand(get relay.Get, _ int64) (d relay.Units) {
	const speechTokens = 2
	n := int64(utf8.RuneCountInString(get("input")))
	d.Most.Set(pricing.Characters, n)
	d.Most.Set(pricing.AudioOut, n*speechTokens)
	d.Assumed.Set(pricing.Characters, n)
	if !strings.Contains(get("model"), "tts-1") {
		d.Assumed.Set(pricing.Input, (n+3)/4)
		d.Assumed.Set(pricing.AudioOut, n*speechTokens)
		d.Assumed.Estimated = true
	}
	return d
}

// Sound in a second, in bytes: at least, and usually.
const (
	leastSound = 750
	usualSound = 16_000
)

// transcriptionDemand estimates the cost of transcription: by seconds, or by tokens, about ten per second.
func transcriptionDemand(_ relay.Get, bytes int64) (d relay.Units) {
	d.Most.Set(pricing.Seconds, bytes/leastSound+1)
	d.Most.Set(pricing.AudioIn, bytes/leastSound*10+1)
	d.Assumed.Set(pricing.Seconds, bytes/usualSound+1)
	d.Assumed.Estimated = true
	return d
}
