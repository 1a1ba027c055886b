// Package awsemulator emulates AWS on loopback: an emulator of DynamoDB in a separate process, and
// servers of SQS, S3 and KMS in this process that are as strict as the services. All data is in
// memory and lost at the end.
//
// Tables and queues are those of the stacks: a test of infra writes installation.json from the
// synthesized templates, and checks that it matches them.
package awsemulator

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"gateway/shared/app/onaws"
	"gateway/shared/store/dynamo/emulator"
	"gateway/shared/testkit/kmstest"
	"gateway/shared/testkit/sqstest"
)

// Services are the services of one process.
type Services struct {
	SQS *sqstest.Server
	KMS *kmstest.Server

	dynamo *emulator.Server
	front  *httptest.Server // in front of the emulator
	s3     *httptest.Server
	key    string
	queues map[string]string // addresses by name
}

// Region is the region that the emulators report.
const Region = "eu-west-1"

// Start starts the services with the queues and tables of the installation, its bucket and
// its key. root is the source tree, where npm installs the emulator; if it is not
// installed, the error is emulator.ErrMissing.
func Start(ctx context.Context, root string) (_ *Services, err error) {
	s := &Services{queues: map[string]string{}}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.dynamo, err = emulator.Start(root); err != nil {
		return nil, err
	}
	if s.front, err = likeDynamoDB(s.dynamo.URL()); err != nil {
		return nil, err
	}
	if err = s.makeTables(ctx); err != nil {
		return nil, err
	}
	backend := s3mem.New()
	if err = backend.CreateBucket(bucketName); err != nil {
		return nil, err
	}
	s.s3 = httptest.NewServer(likeS3(gofakes3.New(backend).Server()))
	s.KMS = kmstest.Start()
	s.key = s.KMS.CreateKey()
	s.SQS = sqstest.Start()
	in := Described()
	for _, name := range in.order() {
		q := in.Queues[name]
		s.queues[name] = s.SQS.Create(name, sqstest.Options{
			Visibility: time.Duration(q.VisibilityTimeout) * time.Second, MaxReceives: q.MaxReceives, DeadLetter: q.DeadLetter,
		})
	}
	return s, nil
}

// likeS3 prevents the fake from sending the checksum of the complete object with a part of it.
func likeS3(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" {
			r.Header.Del("X-Amz-Checksum-Mode")
			w = partial{w}
		}
		next.ServeHTTP(w, r)
	})
}

type partial struct{ http.ResponseWriter }

func (p partial) WriteHeader(status int) {
	for name := range p.Header() {
		if strings.HasPrefix(name, "X-Amz-Checksum-") {
			p.Header().Del(name)
		}
	}
	p.ResponseWriter.WriteHeader(status)
}

// Close ends all of it.
func (s *Services) Close() {
	for _, server := range []*httptest.Server{s.front, s.s3} {
		if server != nil {
			server.CloseClientConnections()
			server.Close()
		}
	}
	if s.SQS != nil {
		s.SQS.Close()
	}
	if s.KMS != nil {
		s.KMS.Close()
	}
	if s.dynamo != nil {
		s.dynamo.Close()
	}
}

// Endpoints are the variables that hold the addresses of the services, with their values.
func (s *Services) Endpoints() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": s.front.URL, "AWS_ENDPOINT_URL_SQS": s.SQS.URL(),
		"AWS_ENDPOINT_URL_S3": s.s3.URL, "AWS_ENDPOINT_URL_KMS": s.KMS.URL(),
	}
}

// Identity are the variables with a caller's credentials; accessKey is the id of the access
// key. The services accept any.
func Identity(accessKey string) map[string]string {
	return map[string]string{"AWS_REGION": Region, "AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": "secret"}
}

// Named are the variables that name the installation's resources.
func (s *Services) Named() map[string]string {
	return map[string]string{
		onaws.EnvTablePrefix: tablePrefix, onaws.EnvBucket: bucketName, onaws.EnvKey: s.key, onaws.EnvAuditQueue: s.queues["gateway-audit"],
		onaws.EnvUsageQueue: s.queues["gateway-usage"], onaws.EnvRunQueue: s.queues["gateway-batches"], onaws.EnvExportQueue: s.queues["gateway-exports"],
	}
}

// tablePrefix is the prefix of the tables' names.
const tablePrefix = "gateway-"

// Set sets variables for this process.
func Set(vars ...map[string]string) error {
	var errs []error
	for _, m := range vars {
		for name, v := range m {
			errs = append(errs, os.Setenv(name, v))
		}
	}
	return errors.Join(errs...)
}

// String names the services and where they are.
func (s *Services) String() string {
	return fmt.Sprintf("DynamoDB %s, SQS %s, S3 %s, KMS %s", s.front.URL, s.SQS.URL(), s.s3.URL, s.KMS.URL())
}

// EmulatorHeader is a header in the responses of One. Tests use it to verify what serves an
// endpoint.
const EmulatorHeader = "X-Stand-In"

var scope = regexp.MustCompile(`Credential=[^/]+/\d{8}/[a-z0-9-]+/([a-z0-9]+)/aws4_request`)

// One is a single endpoint for all services, for AWS_ENDPOINT_URL. It finds the service by
// the name for which a request is signed.
func (s *Services) One() (http.Handler, error) {
	services := map[string]http.Handler{}
	e := s.Endpoints()
	for service, endpoint := range map[string]string{
		"dynamodb": e["AWS_ENDPOINT_URL_DYNAMODB"], "sqs": e["AWS_ENDPOINT_URL_SQS"], "s3": e["AWS_ENDPOINT_URL_S3"], "kms": e["AWS_ENDPOINT_URL_KMS"],
	} {
		to, err := url.Parse(endpoint)
		if err != nil {
			return nil, err
		}
		services[service] = &httputil.ReverseProxy{
			Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(to); p.Out.Host = to.Host },
			Transport: &http.Transport{MaxIdleConnsPerHost: 64},
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(EmulatorHeader, "dynoxide")
		m := scope.FindStringSubmatch(r.Header.Get("Authorization"))
		if m == nil || services[m[1]] == nil {
			http.Error(w, fmt.Sprintf("no service stands in for %q", m), http.StatusNotFound)
			return
		}
		services[m[1]].ServeHTTP(w, r)
	}), nil
}

// makeTables makes the tables of the installation.
func (s *Services) makeTables(ctx context.Context) error {
	client := dynamodb.NewFromConfig(aws.Config{
		Region: Region, BaseEndpoint: &s.front.URL, HTTPClient: awshttp.NewBuildableClient(),
		Credentials: credentials.NewStaticCredentialsProvider("standin", "secret", ""),
	})
	for name, table := range Described().Tables {
		in := &dynamodb.CreateTableInput{TableName: aws.String(name), BillingMode: types.BillingMode(table.BillingMode)}
		for _, k := range table.KeySchema {
			in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String(k.AttributeName), KeyType: types.KeyType(k.KeyType)})
		}
		for _, a := range table.AttributeDefinitions {
			in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(a.AttributeName), AttributeType: types.ScalarAttributeType(a.AttributeType)})
		}
		if _, err := client.CreateTable(ctx, in); err != nil {
			return fmt.Errorf("awsemulator: table %s: %w", name, err)
		}
		_, err := client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName: aws.String(name), TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(table.TimeToLive), Enabled: aws.Bool(true)},
		})
		if err != nil {
			return fmt.Errorf("awsemulator: table %s: %w", name, err)
		}
	}
	return nil
}

// likeDynamoDB is a proxy of the emulator. It removes from UpdateItem's responses what DynamoDB
// would not return: the keys of an item that did not exist.
func likeDynamoDB(emulator string) (*httptest.Server, error) {
	to, err := url.Parse(emulator)
	if err != nil {
		return nil, err
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = withoutKeys
	// Many functions call at the same time, and each has its own connections.
	proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 256}
	return httptest.NewServer(proxy), nil
}

func withoutKeys(res *http.Response) error {
	if res.StatusCode != http.StatusOK || !strings.HasSuffix(res.Request.Header.Get("X-Amz-Target"), ".UpdateItem") {
		return nil
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	var answer struct{ Attributes map[string]json.RawMessage }
	if json.Unmarshal(body, &answer) == nil && len(answer.Attributes) == 2 && answer.Attributes["pk"] != nil && answer.Attributes["sk"] != nil {
		body = []byte("{}")
		res.Header.Del("X-Amz-Crc32")
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	res.Header.Del("Content-Length")
	return nil
}

//go:embed installation.json
var installation []byte

// Installation is what the stacks make, as far as functions can see it. Names and ARNs are
// those of an installation "gateway" in one account.
type Installation struct {
	Tables    map[string]Table
	Queues    map[string]Queue
	Functions map[string]Function
}

// Table is a table of the template.
type Table struct {
	KeySchema            []struct{ AttributeName, KeyType string }
	AttributeDefinitions []struct{ AttributeName, AttributeType string }
	BillingMode          string
	TimeToLive           string // name of the attribute
}

// Queue is a queue of the template; visibility is in seconds.
type Queue struct {
	VisibilityTimeout int
	DeadLetter        string // name of the queue; none: ""
	MaxReceives       int
}

// Function is a function of the template: memory is in MB, timeout in seconds.
type Function struct {
	Memory, Timeout int
	Policy          []Statement
}

// Statement is a statement of a role's policy. All statements allow.
type Statement struct {
	Action, Resource List
	Condition        map[string]map[string]List `json:",omitempty"`
}

// List is one text or a list of texts, as policies have both.
type List []string

// UnmarshalJSON implements json.Unmarshaler.
func (l *List) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '[' {
		return json.Unmarshal(raw, (*[]string)(l))
	}
	var one string
	if err := json.Unmarshal(raw, &one); err != nil {
		return err
	}
	*l = List{one}
	return nil
}

// Described is the installation that the templates describe.
var Described = sync.OnceValue(func() *Installation {
	var in Installation
	if err := json.Unmarshal(installation, &in); err != nil {
		panic(fmt.Sprintf("awsemulator: installation.json: %v", err)) // a test checks that it can be read
	}
	return &in
})

// bucketName is the bucket's name in the policies of the installation.
const bucketName = "gateway-bucket"

// order lists the names of queues so that each comes after its dead-letter queue.
func (in *Installation) order() []string {
	names := slices.Sorted(maps.Keys(in.Queues))
	slices.SortStableFunc(names, func(a, b string) int {
		return strings.Compare(in.Queues[a].DeadLetter, in.Queues[b].DeadLetter)
	})
	return names
}
