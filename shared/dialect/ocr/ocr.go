// Package ocr carries requests to read documents. Clients ask in the shape of Mistral's
// POST /ocr, which the hosts of its models take as it is. Hosts differ only in the
// documents that they take, so the translators here check the document.
package ocr

import (
	"encoding/base64"
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Mistral accepts documents and images by address, as data: URLs, and uploaded files by
// id.
type Mistral struct{}

// Azure takes documents and images as data: URLs only.
type Azure struct{ Mistral }

var (
	_ chat.Translator = Mistral{}
	_ chat.Translator = Azure{}
)

// Name implements chat.Translator.
func (Mistral) Name() string { return "mistral.ocr" }

// Name implements chat.Translator.
func (Azure) Name() string { return "azure.ocr" }

var keys = wire.NewKeySet("model", "document")

// EncodeRequest implements chat.Translator: the client's own bytes with the chosen model.
func (Mistral) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	return encode(dst, body, a, true)
}

// EncodeRequest implements chat.Translator.
func (Azure) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	return encode(dst, body, a, false)
}

func encode(dst, body []byte, a *chat.TranslatorRequest, addresses bool) ([]byte, string, error) {
	var w wire.Walk
	if err := keys.Walk(body, &w); err != nil {
		return dst, "", err
	}
	document := w.Spans[1]
	if !document.Present(body) {
		return dst, "", fault.Invalid("document", "document is required: an object with its type")
	}
	if err := check(document.Of(body), addresses); err != nil {
		return dst, "", err
	}
	return wire.Splice(dst, body, keys.SetKey(&w, 0, wire.AppendJSONString(nil, a.Model))), "", nil
}

// check tests a document: {type: document_url, document_url}, {type: image_url,
// image_url: text or {url}}, {type: file, file_id}.
func check(raw []byte, addresses bool) error {
	d := wire.NewDecoderAt(raw, "document")
	var kind, file string
	found := map[string]string{}
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch name := string(key); name {
		case "type":
			kind = d.Str()
		case "file_id":
			file = d.Str()
		case "document_url":
			found[name] = d.Str()
		case "image_url":
			if d.Kind() == wire.KindString {
				found[name] = d.Str()
				continue
			}
			for key := range d.Object {
				if string(key) == "url" {
					found[name] = d.Str()
				}
			}
		}
	}
	if err := d.End(); err != nil {
		return err
	}
	switch kind {
	case "document_url", "image_url":
		return checkAddress("document."+kind, found[kind], addresses)
	case "file":
		if file == "" || !addresses {
			return fault.Invalid("document.file_id", "document.file_id must be the id of a file stored at the provider; if it stores no files, send the document as a data: URL")
		}
		return nil
	}
	return fault.Invalid("document.type", "document.type must be document_url, image_url or file")
}

func checkAddress(field, address string, addresses bool) error {
	head, data, inline := strings.Cut(address, ";base64,")
	mime, isData := strings.CutPrefix(head, "data:")
	switch {
	case isData && inline:
		if mime == "" || data == "" || !isBase64(data) {
			return fault.Invalid(field, "%s must name the type of its data and contain it as base64: data:application/pdf;base64,...", field)
		}
		return nil
	case !addresses:
		return fault.Invalid(field, "%s must be a data: URL in base64: this provider fetches no documents", field)
	case !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://"):
		return fault.Invalid(field, "%s must be a https: or data: URL", field)
	}
	return nil
}

// isBase64 looks at the end of the data and at its letters, without decoding it.
func isBase64(data string) bool {
	tail := data[max(0, len(data)/4*4-4):]
	if _, err := base64.StdEncoding.DecodeString(tail); err != nil && len(data)%4 == 0 {
		return false
	}
	for i := range len(data) {
		c := data[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '=' && i >= len(data)-2) {
			return false
		}
	}
	return true
}

// DecodeResponse implements chat.Translator: the response is forwarded as it is, and its
// pages are counted.
func (Mistral) DecodeResponse(dst, answer []byte, _ http.Header, _ *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	d := wire.NewDecoder(answer)
	m := chat.Meter{Complete: true, Started: true}
	pages, listed := chat.Opt[int64]{}, false
	var n int64
	for key := range d.Object {
		switch string(key) {
		case "model":
			m.Model = upstream.OptString(d)
		case "pages":
			if d.Kind() == wire.KindArray {
				listed = true
				for range d.Array {
					n++
				}
			}
		case "usage_info":
			if d.Kind() == wire.KindObject {
				for key := range d.Object {
					if string(key) == "pages_processed" {
						upstream.Count(d, &pages)
					}
				}
			}
		}
	}
	switch {
	case d.End() != nil:
		return dst, "", chat.Meter{}, upstream.Invalid("The provider's response is not JSON", d.End())
	case !listed:
		return dst, "", chat.Meter{}, upstream.InBand(answer)
	}
	m.Usage.Set(pricing.Pages, pages.Or(n))
	return append(dst, answer...), "", m, nil
}

// DecodeError implements chat.Translator.
func (Mistral) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return upstream.DecodeError(status, h, body)
}
