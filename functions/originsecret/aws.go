package originsecret

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"gateway/shared/host/originauth"
)

// Names of the variables of a rotation.
const (
	EnvSecret    = "GATEWAY_ORIGIN_SECRET_ID"       // the secret in Secrets Manager
	EnvParameter = "GATEWAY_DISTRIBUTION_PARAMETER" // the parameter that names the distribution
)

// edgeRegion is where CloudFront is controlled.
const edgeRegion = "us-east-1"

// Cloud is the secret in Secrets Manager and the distribution of CloudFront. Its
// calls are made without the SDK's clients: a distribution that is read into an
// older client's types and written back has lost what they do not know.
type Cloud struct {
	Config    aws.Config
	Secret    string // id or ARN
	Parameter string // names the distribution
}

// FromEnvironment makes a Cloud of the variables; nil where there is no secret.
func FromEnvironment(cfg aws.Config) *Cloud {
	c := &Cloud{Config: cfg, Secret: os.Getenv(EnvSecret), Parameter: os.Getenv(EnvParameter)}
	if c.Secret == "" || c.Parameter == "" {
		return nil
	}
	return c
}

// Load implements Vault.
func (c *Cloud) Load(ctx context.Context) (s Secret, err error) {
	var out struct{ SecretString string }
	if err := c.json(ctx, "secretsmanager", c.Config.Region, "secretsmanager.GetSecretValue", map[string]any{"SecretId": c.Secret}, &out); err != nil {
		return s, err
	}
	if json.Unmarshal([]byte(out.SecretString), &s) != nil { // the error would quote it
		return s, errors.New("the secret is not a JSON object")
	}
	return s, nil
}

// Save implements Vault.
func (c *Cloud) Save(ctx context.Context, s Secret) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return c.json(ctx, "secretsmanager", c.Config.Region, "secretsmanager.PutSecretValue",
		map[string]any{"SecretId": c.Secret, "SecretString": string(text), "ClientRequestToken": token(text)}, nil)
}

// token is the name of the version that a text becomes: the same write made again
// is one.
func token(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// OriginValues implements Edge.
func (c *Cloud) OriginValues(ctx context.Context) (values []string, settled bool, err error) {
	id, err := c.distribution(ctx)
	if err != nil {
		return nil, false, err
	}
	config, _, err := c.configuration(ctx, id)
	if err != nil {
		return nil, false, err
	}
	found, err := headerValues(config)
	if err != nil {
		return nil, false, err
	}
	for _, f := range found {
		values = append(values, f.value)
	}
	whole, _, err := c.call(ctx, "cloudfront", edgeRegion, http.MethodGet, "/2020-05-31/distribution/"+id, nil, nil)
	if err != nil {
		return nil, false, err
	}
	status, err := deployment(whole)
	return values, status == "Deployed", err
}

// Send implements Edge.
func (c *Cloud) Send(ctx context.Context, value string) error {
	id, err := c.distribution(ctx)
	if err != nil {
		return err
	}
	config, version, err := c.configuration(ctx, id)
	if err != nil {
		return err
	}
	if config, err = withHeaderValue(config, value); err != nil {
		return err
	}
	h := http.Header{"If-Match": {version}, "Content-Type": {"text/xml"}}
	_, _, err = c.call(ctx, "cloudfront", edgeRegion, http.MethodPut, "/2020-05-31/distribution/"+id+"/config", h, config)
	return err
}

func (c *Cloud) distribution(ctx context.Context) (string, error) {
	var out struct{ Parameter struct{ Value string } }
	err := c.json(ctx, "ssm", c.Config.Region, "AmazonSSM.GetParameter", map[string]any{"Name": c.Parameter}, &out)
	if err != nil {
		return "", err
	}
	if id := out.Parameter.Value; id != "" && !strings.ContainsFunc(id, func(r rune) bool { return r < '0' || r > 'Z' }) {
		return id, nil
	}
	return "", fmt.Errorf("parameter %s contains no id of a distribution", c.Parameter)
}

func (c *Cloud) configuration(ctx context.Context, id string) (config []byte, version string, err error) {
	config, h, err := c.call(ctx, "cloudfront", edgeRegion, http.MethodGet, "/2020-05-31/distribution/"+id+"/config", nil, nil)
	return config, h.Get("Etag"), err
}

// json makes a call of the JSON protocol.
func (c *Cloud) json(ctx context.Context, service, region, target string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	h := http.Header{"X-Amz-Target": {target}, "Content-Type": {"application/x-amz-json-1.1"}}
	answer, _, err := c.call(ctx, service, region, http.MethodPost, "/", h, body)
	if err != nil || out == nil {
		return err
	}
	if json.Unmarshal(answer, out) != nil { // the error would quote the response
		return fmt.Errorf("%s: the response is not JSON", target)
	}
	return nil
}

// Bounds of one call.
const (
	callTime    = 20 * time.Second
	maxResponse = 4 << 20
)

// call signs and makes one call. Errors contain the status and the kind that AWS returned, and
// no content of the request or response.
func (c *Cloud) call(ctx context.Context, service, region, method, path string, h http.Header, body []byte) ([]byte, http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, endpoint(service, region)+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	for k, v := range h {
		req.Header[k] = v
	}
	credentials, err := c.Config.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, nil, err
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, credentials, req, hex.EncodeToString(sum[:]), service, region, time.Now()); err != nil {
		return nil, nil, err
	}
	res, err := c.Config.HTTPClient.Do(req)
	if err != nil {
		return nil, nil, fmt.Errorf("%s does not answer: %w", service, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxResponse))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", service, err)
	}
	if res.StatusCode/100 != 2 {
		return nil, nil, fmt.Errorf("%s rejects %s %s with %d %s", service, method, path, res.StatusCode, problem(answer))
	}
	return answer, res.Header, nil
}

// endpoint is where a service is; the variables are those of every AWS SDK.
func endpoint(service, region string) string {
	name := strings.ToUpper(service)
	if service == "secretsmanager" {
		name = "SECRETS_MANAGER"
	}
	for _, v := range []string{os.Getenv("AWS_ENDPOINT_URL_" + name), os.Getenv("AWS_ENDPOINT_URL")} {
		if v != "" {
			return strings.TrimSuffix(v, "/")
		}
	}
	if service == "cloudfront" {
		return "https://cloudfront.amazonaws.com"
	}
	return "https://" + service + "." + region + ".amazonaws.com"
}

// problem is the kind of an error, of either protocol.
func problem(answer []byte) string {
	var e struct {
		Type string `json:"__type"`
	}
	if json.Unmarshal(answer, &e) == nil {
		return e.Type[strings.LastIndexByte(e.Type, '#')+1:]
	}
	_, rest, _ := bytes.Cut(answer, []byte("<Code>"))
	code, _, _ := bytes.Cut(rest, []byte("</Code>"))
	return string(code[:min(len(code), 64)])
}

// place is the position of a value in a document.
type place struct {
	from, to int64
	value    string
}

// errNoHeader reports that the distribution is not one of the gateway's.
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
			return nil, errors.New("the configuration of the distribution is not XML")
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
		return "", errors.New("the distribution is not XML")
	}
	return d.Status, nil
}
