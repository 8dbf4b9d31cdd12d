package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// wire is a kept connection to the API.
type wire struct {
	conn net.Conn
	r    *bufio.Reader
	head string
	body bytes.Buffer
	out  bytes.Buffer
}

func dial(ctx context.Context, address, token string) (*wire, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &wire{
		conn: conn, r: bufio.NewReader(conn),
		head: "POST /v1/bookings HTTP/1.1\r\nHost: " + address + "\r\nAuthorization: Bearer " + token + "\r\nContent-Type: application/json\r\n",
	}, nil
}

// book sends one request and reads its answer whole.
func (w *wire) book(slot int) (status int, body []byte, err error) {
	w.body.Reset()
	wireBody(&w.body, slot)
	w.out.Reset()
	_, _ = fmt.Fprintf(&w.out, "%sIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n%s", w.head, slotKey(slot), w.body.Len(), w.body.Bytes())
	if err := w.conn.SetDeadline(time.Now().Add(readyWithin)); err != nil {
		return 0, nil, err
	}
	if _, err := w.conn.Write(w.out.Bytes()); err != nil {
		return 0, nil, err
	}
	line, err := w.r.ReadString('\n')
	if err != nil {
		return 0, nil, err
	}
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return 0, nil, fmt.Errorf("the API's first line is %q", line)
	}
	if status, err = strconv.Atoi(fields[1]); err != nil {
		return 0, nil, fmt.Errorf("the API's first line is %q", line)
	}
	length := -1
	for {
		line, err := w.r.ReadSlice('\n')
		if err != nil {
			return 0, nil, err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, nil, err
			}
		}
	}
	if length < 0 {
		return 0, nil, errors.New("the API's answer has no Content-Length")
	}
	body = make([]byte, length)
	_, err = io.ReadFull(w.r, body)
	return status, body, err
}
