package body

import (
	"testing"

	"gateway/shared/relay/routes"
	"gateway/shared/wire"
)

// A passed-through body states its output limit if its format has one.
func TestBoundsWithinSettingsAreRead(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int64{
		`{"contents":[],"generationConfig":{"maxOutputTokens":300}}`:                     300,
		`{"contents":[],"generationConfig":{"maxOutputTokens":300,"candidateCount":4}}`:  1200,
		`{"contents":[],"generation_config":{"max_output_tokens":300}}`:                  300,
		`{"input":"x","generation_config":{"max_output_tokens":0}}`:                      0,
		`{"messages":[],"inferenceConfig":{"maxTokens":70}}`:                             70,
		`{"inputText":"x","textGenerationConfig":{"maxTokenCount":70}}`:                  70,
		`{"max_tokens":5,"generationConfig":{"maxOutputTokens":300}}`:                    5, // the format of the outermost field
		`{"contents":[],"generationConfig":{"maxOutputTokens":-1}}`:                      -1,
		`{"contents":[],"generationConfig":{"maxOutputTokens":"many"}}`:                  -1,
		`{"contents":[],"generationConfig":{"maxOutputTokens":1,"maxOutputTokens":300}}`: -1,
		`{"contents":[],"generationConfig":{}}`:                                          -1,
		`{"contents":[],"generationConfig":null}`:                                        -1,
		`{"contents":[{"generationConfig":{"maxOutputTokens":300}}]}`:                    -1,
	} {
		var w wire.Walk
		if err := walkOf([]byte(body), &w); err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		d := demandsIn(&routes.Route{BodyMode: routes.Raw}, []byte(body), &w, nil)
		if d.OutAssumed != (want < 0) || want >= 0 && d.MaxOutput != want || want < 0 && d.MaxOutput != routes.DefaultReserveOutput {
			t.Errorf("%s: %d, assumed %t, want %d", body, d.MaxOutput, d.OutAssumed, want)
		}
	}
}
