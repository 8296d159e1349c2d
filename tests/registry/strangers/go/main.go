// franz-go's registry client and its serde, asked by lines of JSON: see serde_strangers.py for the questions.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/bufbuild/protocompile"
	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

type question struct {
	Op      string          `json:"op"`
	Subject string          `json:"subject"`
	Type    string          `json:"type"`
	Schema  string          `json:"schema"`
	Value   json.RawMessage `json:"value"`
	Bytes   []byte          `json:"bytes"`
}

type answer struct {
	Bytes []byte `json:"bytes,omitempty"`
	Value any    `json:"value,omitempty"`
	Error string `json:"error,omitempty"`
}

// The type that the serde knows values by.
type value struct{ content any }

var types = map[string]sr.SchemaType{"AVRO": sr.TypeAvro, "JSON": sr.TypeJSON, "PROTOBUF": sr.TypeProtobuf}

func main() {
	client, err := sr.NewClient(sr.URLs(os.Args[1]))
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 1<<24)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		found, err := work(client, asked)
		if err != nil {
			found = answer{Error: err.Error()}
		}
		out.Encode(found)
	}
}

func work(client *sr.Client, asked question) (answer, error) {
	if asked.Op == "write" {
		return write(client, asked)
	}
	return read(client, asked)
}

func write(client *sr.Client, asked question) (answer, error) {
	schema := sr.Schema{Schema: asked.Schema, Type: types[asked.Type]}
	registered, err := client.CreateSchema(context.Background(), asked.Subject, schema)
	if err != nil {
		return answer{}, err
	}
	encode, _, options, err := codec(asked.Type, asked.Schema, "")
	if err != nil {
		return answer{}, err
	}
	var serde sr.Serde
	serde.Register(registered.ID, value{}, append(options, sr.EncodeFn(encode))...)
	data, err := serde.Encode(value{asked.Value})
	return answer{Bytes: data}, err
}

func read(client *sr.Client, asked question) (answer, error) {
	var header sr.ConfluentHeader
	id, _, err := header.DecodeID(asked.Bytes)
	if err != nil {
		return answer{}, err
	}
	schema, err := client.SchemaByID(context.Background(), id)
	if err != nil {
		return answer{}, err
	}
	_, decode, options, err := codec(schema.Type.String(), schema.Schema, asked.Schema)
	if err != nil {
		return answer{}, err
	}
	var serde sr.Serde
	serde.Register(id, value{}, append(options, sr.DecodeFn(decode))...)
	var found value
	err = serde.Decode(asked.Bytes, &found)
	return answer{Value: found.content}, err
}

func codec(kind string, writer string, reader string) (func(any) ([]byte, error), func([]byte, any) error, []sr.EncodingOpt, error) {
	switch kind {
	case "AVRO":
		encode, decode, err := avroCodec(writer, reader)
		return encode, decode, nil, err
	case "PROTOBUF":
		encode, decode, err := protobufCodec(writer)
		return encode, decode, []sr.EncodingOpt{sr.Index(0)}, err
	}
	encode := func(each any) ([]byte, error) { return each.(value).content.(json.RawMessage), nil }
	decode := func(data []byte, into any) error { return json.Unmarshal(data, &into.(*value).content) }
	return encode, decode, nil, nil
}

func avroCodec(writer string, reader string) (func(any) ([]byte, error), func([]byte, any) error, error) {
	schema, err := avro.ParseWithCache(writer, "", &avro.SchemaCache{})
	if err != nil {
		return nil, nil, err
	}
	resolved := schema
	if reader != "" {
		wanted, err := avro.ParseWithCache(reader, "", &avro.SchemaCache{})
		if err != nil {
			return nil, nil, err
		}
		if resolved, err = avro.NewSchemaCompatibility().Resolve(wanted, schema); err != nil {
			return nil, nil, err
		}
	}
	encode := func(each any) ([]byte, error) {
		var plain map[string]any
		if err := json.Unmarshal(each.(value).content.(json.RawMessage), &plain); err != nil {
			return nil, err
		}
		return avro.Marshal(schema, typed(schema, plain))
	}
	decode := func(data []byte, into any) error {
		var plain map[string]any
		err := avro.Unmarshal(resolved, data, &plain)
		into.(*value).content = untyped(plain)
		return err
	}
	return encode, decode, nil
}

// JSON has one kind of number, Avro four.
func typed(schema avro.Schema, plain any) any {
	switch each := schema.(type) {
	case *avro.RecordSchema:
		found := map[string]any{}
		for _, field := range each.Fields() {
			if part, there := plain.(map[string]any)[field.Name()]; there {
				found[field.Name()] = typed(field.Type(), part)
			}
		}
		return found
	case *avro.ArraySchema:
		found := []any{}
		for _, part := range plain.([]any) {
			found = append(found, typed(each.Items(), part))
		}
		return found
	case *avro.UnionSchema:
		if plain == nil {
			return nil
		}
		for _, branch := range each.Types() {
			if branch.Type() != avro.Null {
				return map[string]any{string(branch.Type()): typed(branch, plain)}
			}
		}
	}
	switch schema.Type() {
	case avro.Int:
		return int(plain.(float64))
	case avro.Long:
		return int64(plain.(float64))
	}
	return plain
}

// hamba shows a value of a union as a map with the branch's name.
func untyped(found any) any {
	switch each := found.(type) {
	case map[string]any:
		for _, name := range []string{"string", "long", "int", "double"} {
			if inner, there := each[name]; there && len(each) == 1 {
				return untyped(inner)
			}
		}
		for name, part := range each {
			each[name] = untyped(part)
		}
	}
	return found
}

func protobufCodec(text string) (func(any) ([]byte, error), func([]byte, any) error, error) {
	sources := protocompile.SourceAccessorFromMap(map[string]string{"schema.proto": text})
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: sources}),
	}
	files, err := compiler.Compile(context.Background(), "schema.proto")
	if err != nil {
		return nil, nil, err
	}
	message := files[0].Messages().Get(0)
	encode := func(each any) ([]byte, error) {
		built := dynamicpb.NewMessage(message)
		if err := protojson.Unmarshal(each.(value).content.(json.RawMessage), built); err != nil {
			return nil, err
		}
		return proto.Marshal(built)
	}
	decode := func(data []byte, into any) error {
		built := dynamicpb.NewMessage(message)
		if err := proto.Unmarshal(data, built); err != nil {
			return err
		}
		return asJSON(built, into)
	}
	return encode, decode, nil
}

func asJSON(message protoreflect.ProtoMessage, into any) error {
	text, err := protojson.Marshal(message)
	if err != nil {
		return fmt.Errorf("as JSON: %w", err)
	}
	return json.Unmarshal(text, &into.(*value).content)
}
