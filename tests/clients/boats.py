"""A custom kind and an object of it, which clients work with."""

from __future__ import annotations

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.harbour.dev}
spec:
  group: harbour.dev
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat, shortNames: [bt], \
categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.oars, statusReplicasPath: .status.oars}
    additionalPrinterColumns:
    - {name: Colour, type: string, jsonPath: .spec.colour}
    - {name: Oars, type: integer, jsonPath: .spec.oars, priority: 1}
    schema:
      openAPIV3Schema:
        type: object
        description: Something that swims.
        properties:
          spec:
            type: object
            properties:
              colour: {type: string, description: What it is painted with.}
              oars: {type: integer, minimum: 0}
              crew: {type: array, items: {type: string}}
          status:
            type: object
            x-kubernetes-preserve-unknown-fields: true
"""


BOAT = """
apiVersion: harbour.dev/v1
kind: Boat
metadata: {name: anna, labels: {pier: north}}
spec: {colour: red, oars: 2}
"""
