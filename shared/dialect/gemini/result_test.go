package gemini

import (
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
)

// TestEveryMemberOfAFunctionResponseIsReadOrReported: pictures in parts continue beside
// the result.
func TestEveryMemberOfAFunctionResponseIsReadOrReported(t *testing.T) {
	r, err := Generate{}.DecodeRequest([]byte(`{"contents":[{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"f","willContinue":true,"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}],"response":{"output":"seen"}}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Model = "m"
	var loss chat.Loss
	sent, err := chat.Translate(nil, Generate{}, openai.Chat{}, r, &chat.Traits{}, &loss)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"content":"seen"`, `data:image/png;base64,iVBORw0KGgo=`} {
		if !strings.Contains(string(sent), want) {
			t.Errorf("%s is not in %s", want, sent)
		}
	}
	if !strings.Contains(loss.Header(), "willContinue") {
		t.Errorf("lost %q", loss.Header())
	}
}
