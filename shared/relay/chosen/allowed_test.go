package chosen

import (
	"testing"

	"gateway/shared/fault"
)

func TestOtherModelsOfABodyAreFound(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"model":"a","models":["b"]}`:                                    "models[0] b",
		`{"model":"a","tools":[{"type":"image_generation","model":"b"}]}`: "tools[0].model b",
		`{"requests":[{"custom_id":"1","params":{"model":"b"}}]}`:         "requests[0].params.model b",
		`{"requests":[{"model":"models/b"}]}`:                             "requests[0].model b",
		`{"data_source":{"model":"b"}}`:                                   "data_source.model b",
		`{"modelId":"arn:aws:bedrock:us-east-1::foundation-model/b"}`:     "modelId b",
		`{"fallback_model":"b"}`:                                          "fallback_model b",
		`{"fallbacks":[{"model":"b"}]}`:                                   "fallbacks[0].model b",
		`{"model":"a","metadata":{"model":"b"}}`:                          "",
	} {
		found, err := otherModels([]byte(body))
		got := ""
		for _, r := range found {
			got = r.Field + " " + r.ID
		}
		if err != nil || len(found) > 1 || got != want {
			t.Errorf("%s: %q %v, want %q", body, got, err, want)
		}
	}
	if _, err := otherModels([]byte("{")); fault.From(err).Code != fault.ModelNotAllowed {
		t.Errorf("a body that cannot be read: %v", err)
	}
}
