package gemini

import (
	"net/http"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/pricing"
)

func TestMultimodalEmbeddings(t *testing.T) {
	body := []byte(`{"model":"m","input":["a",{"image":{"base64":"iVBORw0KGgo="}}],"dimensions":128}`)
	a := &chat.TranslatorRequest{Body: body, Model: "multimodalembedding@001", Loss: &chat.Loss{}, ProviderName: "vertex-ai"}
	up, _, err := VertexEmbeddings{}.EncodeRequest(nil, body, a)
	want := `{"instances":[{"text":"a"},{"image":{"bytesBase64Encoded":"iVBORw0KGgo="}}],"parameters":{"dimension":128}}`
	if err != nil || string(up) != want || !a.Loss.Empty() {
		t.Errorf("%s %v %v", up, err, a.Loss.Entries)
	}
	out, _, m, err := VertexEmbeddings{}.DecodeResponse(nil, []byte(`{"predictions":[{"textEmbedding":[1,2]},{"imageEmbedding":[3,4]}]}`), http.Header{}, a)
	want = `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1,2]},{"object":"embedding","index":1,"embedding":[3,4]}],"model":"multimodalembedding@001","provider":"vertex-ai","usage":{"prompt_tokens":0,"total_tokens":0}}`
	if err != nil || string(out) != want || m.Usage.N(pricing.InputImages) != 1 {
		t.Errorf("%s %v %+v", out, err, m)
	}
	both := []byte(`{"input":{"text":"a","image":{"base64":"iVBORw0KGgo="}}}`)
	if _, _, err := (VertexEmbeddings{}).EncodeRequest(nil, both, a); !fault.Is(err, fault.InvalidRequest) || fault.From(err).Field != "input" {
		t.Errorf("both: %v", err)
	}
}

func TestImagenOnAIStudioTakesLess(t *testing.T) {
	body := []byte(`{"prompt":"a","seed":1,"aspect_ratio":"1:1"}`)
	a := &chat.TranslatorRequest{Body: body, Model: "imagen-4.0", Loss: &chat.Loss{}, ProviderName: "google"}
	up, _, err := Imagen{}.EncodeRequest(nil, body, a)
	if err != nil || string(up) != `{"instances":[{"prompt":"a"}],"parameters":{"sampleCount":1,"aspectRatio":"1:1"}}` || a.Loss.Header() != "dropped=seed (not accepted by this provider)" {
		t.Errorf("%s %v %s", up, err, a.Loss.Header())
	}
}
