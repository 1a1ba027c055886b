package batch

import (
	"strings"
	"testing"

	"gateway/shared/fault"
)

func TestWhatABatchIsMadeWith(t *testing.T) {
	t.Parallel()
	const head = `{"input_file_id":"f","endpoint":"/v1/chat/completions","completion_window":`
	d, err := ReadDefinition([]byte(head + `"24h","model":"m","metadata":{"a":"b"},"gateway_options":{"X-Gateway-Metadata":{"a": 1},"x-gateway-provider":"@p","x-gateway-virtual-key":null}}`))
	if err != nil || d.Input != "f" || d.Window != Day || string(d.Metadata) != `{"a":"b"}` || string(d.Create) != `{"model":"m"}` ||
		len(d.Options) != 2 || d.Options["x-gateway-metadata"] != `{"a":1}` || d.Options["x-gateway-provider"] != "@p" {
		t.Errorf("%+v %v", d, err)
	}
	for body, field := range map[string]string{
		`{}`: "input_file_id",
		`{"input_file_id":"f","endpoint":"/v1/images","completion_window":"24h"}`: "endpoint",
		head + `"48h"}`:                           "completion_window",
		head + `"24h","gateway_options":"x"}`:     "gateway_options",
		head + `"24h","gateway_options":{"y":1}}`: "gateway_options.y",
		head + `"24h","gateway_options":{"x-gateway-provider":"a","X-Gateway-Provider":"b"}}`: "gateway_options.x-gateway-provider",
		head + `"24h","gateway_options":{"x-gateway-provider":"a\nb"}}`:                       "gateway_options.x-gateway-provider",
	} {
		if _, err := ReadDefinition([]byte(body)); err == nil || fault.From(err).Status() != 400 || fault.From(err).Field != field {
			t.Errorf("%s: %v at %q, want %s", body, err, fault.From(err).Field, field)
		}
	}
}

func TestTheConfigOfABatchIsNotShown(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"input_file_id":"f"}`: `{"input_file_id":"f"}`,
		`{"gateway_options":{"x-gateway-config":{"k":"sk"},"x-gateway-provider":"p"}}`: `{"gateway_options":{"x-gateway-config":"*****","x-gateway-provider":"p"}}`,
		`{"gateway_options":{"X-Gateway-\u0043onfig":"sk"}}`:                           `{"gateway_options":{"X-Gateway-Config":"*****"}}`,
		`{"gateway_\u006fptions":{"x-gateway-config":"sk"}}`:                           ``,
		`{"gateway_options":["sk"]}`:                                                   ``,
		`{"gateway_options":{"x-gateway-config":"sk"`:                                  ``,
		`{"gateway_options":{"x-gateway-config":"sk"},"gateway_options":{}}`:           ``,
	} {
		got := string(HideConfig([]byte(body)))
		if got != want || strings.Contains(got, "sk") {
			t.Errorf("%s: %s", body, got)
		}
	}
}
