package originsecret

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"gateway/shared/host/originauth"
)

// place is the position of a value in a document.
type place struct {
	from, to int64
	value    string
}

// errNoHeader says that the distribution is not one of the gateway's.
var errNoHeader = errors.New("the distribution adds no origin secret to its requests")

// headerValues finds the origin secrets in the configuration of a distribution.
func headerValues(config []byte) (found []place, err error) {
	d := xml.NewDecoder(bytes.NewReader(config))
	var path []string
	var name strings.Builder
	var value place
	for {
		before := d.InputOffset()
		tok, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, errors.New("the configuration of the distribution is no XML")
		}
		switch t := tok.(type) {
		case xml.StartElement:
			path = append(path, t.Name.Local)
			switch t.Name.Local {
			case "OriginCustomHeader":
				name.Reset()
				value = place{}
			case "HeaderValue":
				value = place{from: d.InputOffset(), to: d.InputOffset()}
			}
		case xml.CharData:
			switch last(path) {
			case "HeaderName":
				name.Write(t)
			case "HeaderValue":
				value.value += string(t)
			}
		case xml.EndElement:
			path = path[:len(path)-1]
			switch t.Name.Local {
			case "HeaderValue":
				value.to = before
			case "OriginCustomHeader":
				if strings.EqualFold(strings.TrimSpace(name.String()), originauth.Header) && value.from > 0 {
					found = append(found, value)
				}
			}
		}
	}
	if len(found) == 0 {
		return nil, errNoHeader
	}
	return found, nil
}

func last(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1]
}

// withHeaderValue is the configuration with another origin secret, and the same
// otherwise, byte for byte.
func withHeaderValue(config []byte, value string) ([]byte, error) {
	found, err := headerValues(config)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	at := int64(0)
	for _, f := range found {
		out.Write(config[at:f.from])
		if err := xml.EscapeText(&out, []byte(value)); err != nil {
			return nil, err
		}
		at = f.to
	}
	out.Write(config[at:])
	return out.Bytes(), nil
}

// deployment is the status of a distribution.
func deployment(distribution []byte) (string, error) {
	var d struct{ Status string }
	if err := xml.Unmarshal(distribution, &d); err != nil {
		return "", errors.New("the distribution is no XML")
	}
	return d.Status, nil
}
