package managertest

import "net/url"

// parse reads a form in which no member may come twice.
func parse(body string) (map[string]string, error) {
	v, err := url.ParseQuery(body)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(v))
	for name := range v {
		out[name] = v.Get(name)
	}
	return out, nil
}
