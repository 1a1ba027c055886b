package openai

import (
	"fmt"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/pricing"
)

func TestCheckEmbeddings(t *testing.T) {
	many := "[" + strings.TrimSuffix(strings.Repeat(`"a",`, 2048), ",") + "]"
	tests := []struct {
		body  string
		field string // "" when it is allowed
	}{
		{`{"model":"m","input":"a"}`, ""},
		{`{"model":"m","input":["a","b"],"encoding_format":"base64","dimensions":1,"user":"u"}`, ""},
		{`{"model":"m","input":[1,2,3]}`, ""},
		{`{"model":"m","input":[[1,2],[3]],"dimensions":null}`, ""},
		{`{"model":"m","input":` + many + `}`, ""},
		{`{"model":"m","input":` + strings.TrimSuffix(many, "]") + `,"b"]}`, ""},
		{`{"model":"m","input":[]}`, "input"},
		{`{"model":"m"}`, "input"},
		{`{"model":"m","input":5}`, "input"},
		{`{"model":"m","input":["a",1]}`, "input[1]"},
		{`{"model":"m","input":[[1,"a"]]}`, "input[0][1]"},
		{`{"model":"m","input":{"text":"a","image":"https://example.com/a.png"}}`, ""},
		{`{"model":"m","input":["a",{"image":{"base64":"AAAA"}}]}`, ""},
		{`{"model":"m","input":[{"image":"x"},1]}`, "input[1]"},
		{`{"model":"m","input":[true]}`, "input[0]"},
		{`{"model":"m","input":"a","dimensions":0}`, "dimensions"},
		{`{"model":"m","input":"a","encoding_format":"int8"}`, ""},
		{`{"model":"m","input":"a","encoding_format":8}`, "encoding_format"},
		{`{"model":"m","input":"a","user":1}`, "user"},
		{`[]`, ""},
	}
	for _, tt := range tests {
		err := CheckEmbeddings([]byte(tt.body))
		if tt.body == "[]" {
			if !fault.Is(err, fault.InvalidRequest) {
				t.Errorf("a list as body: %v", err)
			}
			continue
		}
		if tt.field == "" {
			if err != nil {
				t.Errorf("%.60s: %v", tt.body, err)
			}
			continue
		}
		if f := fault.From(err); f == nil || f.Status() != 400 || f.Field != tt.field {
			t.Errorf("%.60s: %v, want a 400 on %s", tt.body, err, tt.field)
		}
	}
}

func TestMeterEmbeddings(t *testing.T) {
	vector := strings.TrimSuffix(strings.Repeat("0.123456,", 3000), ",")
	for _, body := range []string{
		fmt.Sprintf(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[%s]}],"model":"text-embedding-3-small","usage":{"prompt_tokens":8,"total_tokens":8}}`, vector),
		fmt.Sprintf(`{"model":"text-embedding-3-small","usage":{"prompt_tokens":8,"total_tokens":8},"data":[{"embedding":[%s]}]}`, vector),
	} {
		m := MeterEmbeddings([]byte(body))
		if m.Model != "text-embedding-3-small" || m.Usage.N(pricing.Input) != 8 || m.ReportedTotal != 0 || m.Err != nil {
			t.Errorf("%+v", m)
		}
		if _, ok := m.Usage.Get(pricing.Output); ok {
			t.Error("embeddings have output")
		}
	}
	if m := MeterEmbeddings([]byte(`{"error":{"message":"x","code":429}}`)); m.Err == nil || m.Err.Status() != 429 {
		t.Errorf("%+v", m)
	}
}

func TestDataURLs(t *testing.T) {
	tests := []struct {
		in                string
		mime, data, plain string // plain: "yes", "no", "" when it is no data URL
	}{
		{"data:image/png;base64,AAAA", "image/png", "AAAA", "no"},
		{"DATA:Image/PNG;charset=x;BASE64,AAAA", "image/png", "AAAA", "no"},
		{"data:,hello%20you", "text/plain", "hello%20you", "yes"},
		{"data:text/csv,a", "text/csv", "a", "yes"},
		{"data:image/png;base64", "", "", ""},
		{"https://e.com", "", "", ""},
	}
	for _, tt := range tests {
		mime, data, plain, ok := dataURL(tt.in)
		if ok != (tt.plain != "") || mime != tt.mime || data != tt.data || ok && plain != (tt.plain == "yes") {
			t.Errorf("%s: %q %q %v %v", tt.in, mime, data, plain, ok)
		}
	}
}

func TestCleanBase64(t *testing.T) {
	tests := []struct {
		in, want string
		ok       bool
	}{
		{"AAAA", "AAAA", true}, {"AA==", "AA==", true}, {"AA", "AA==", true}, {"A-_A", "A+/A", true}, {"AA\n AA", "AAAA", true},
		{"A", "", false}, {"", "", false}, {"====", "", false}, {"A*AA", "", false}, {"AAAA=", "AAAA", true},
	}
	for _, tt := range tests {
		got, ok := chat.CleanBase64(tt.in)
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("%q: %q %v, want %q %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}
