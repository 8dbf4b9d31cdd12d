package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const loopback = "127.0.0.1"

// natsCommand runs NATS in a process of its own, so that the stack can lose it like any other.
type natsCommand struct {
	Port  int    `required:"" help:"Loopback port."`
	Store string `required:"" help:"Directory of the stream's files."`
}

// Run serves until the context ends.
func (c *natsCommand) Run(ctx context.Context) error {
	options := &server.Options{
		ServerName: "holdfast-local",
		Host:       loopback,
		Port:       c.Port,
		JetStream:  true,
		StoreDir:   c.Store,
		SyncAlways: true, // acknowledged means on disk
		NoSigs:     true,
	}
	instance, err := server.NewServer(options)
	if err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	instance.SetLoggerV2(newNATSLog(os.Stderr), false, false, false)
	instance.Start()
	if !instance.ReadyForConnections(readyLimit) {
		return errors.New("nats: not ready in time")
	}
	<-ctx.Done()
	instance.Shutdown()
	instance.WaitForShutdown()
	return nil
}

// natsService is NATS as a process of the stack: this program once more.
func natsService(opts stackOptions, port int) (*service, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	ready := func(ctx context.Context) error {
		conn, err := nats.Connect(natsURL(port), nats.Timeout(time.Second), nats.NoReconnect())
		if err != nil {
			return err
		}
		conn.Close()
		return nil
	}
	return program("nats", opts.log("nats"), os.Environ(), ready,
		self, "nats", "--port", strconv.Itoa(port), "--store", opts.natsStore()), nil
}

func natsURL(port int) string { return "nats://" + loopback + ":" + strconv.Itoa(port) }
