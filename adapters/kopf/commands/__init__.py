"""All names of Kopf, its commands, and the finder for `import kopf`."""
