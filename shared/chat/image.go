package chat

import "strings"

// An image of a response is a Part of the kind Image. In a stream it is one DeltaImage with the
// image's address as a JSON string: a data: URL, or the host's address.

// ReadImage returns the media of an image address. The content of a base64 data: URL becomes
// Data; any other address stays an address.
func ReadImage(address string) *Media {
	head, data, ok := strings.Cut(address, ",")
	mime, plain := strings.CutPrefix(head, "data:")
	mime, encoded := strings.CutSuffix(mime, ";base64")
	if !ok || !plain || !encoded {
		return &Media{URL: address}
	}
	if data, ok = CleanBase64(data); !ok {
		return &Media{URL: address}
	}
	if mime, _, _ = strings.Cut(mime, ";"); mime == "" {
		mime = imageType(data)
	}
	return &Media{MIME: mime, Data: data}
}

// Address returns the address of an image; an image with Data gets a data: URL.
func (m *Media) Address() string {
	if m.Data == "" {
		return m.URL
	}
	mime := m.MIME
	if mime == "" {
		mime = imageType(m.Data)
	}
	return "data:" + mime + ";base64," + m.Data
}

// ImageOfAssistant is the reason for the loss of an image in an earlier turn of the model, if
// the provider accepts only images of users.
const ImageOfAssistant = "the provider takes no images in turns of the assistant"

// imageType returns the media type of a base64 image by its first bytes, image/png if they are
// unknown.
func imageType(data string) string {
	for _, t := range [...]struct{ begin, mime string }{{"/9j/", "image/jpeg"}, {"UklGR", "image/webp"}, {"R0lGOD", "image/gif"}} {
		if strings.HasPrefix(data, t.begin) {
			return t.mime
		}
	}
	return "image/png"
}
